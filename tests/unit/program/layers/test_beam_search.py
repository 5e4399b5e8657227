"""Beam search layers: their ops, and a whole decoding loop against a beam search in plain Python."""

import numpy as np
import pytest

from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace
from fleet_mpi.program.engine.scope import Scope, create_lod_tensor
from fleet_mpi.program.layers.activation import log
from fleet_mpi.program.layers.beam_search import beam_search, beam_search_decode
from fleet_mpi.program.layers.comparison import is_empty, less_than, logical_and, logical_not
from fleet_mpi.program.layers.control_flow import While
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.layers.manipulation import reshape, topk
from fleet_mpi.program.layers.math import elementwise_add, increment
from fleet_mpi.program.layers.sequence import lod_reset, sequence_expand
from fleet_mpi.program.layers.tensor import fill_constant
from fleet_mpi.program.layers.tensor_array import array_read, array_write, create_array
from tests.unit.program.building import from_scratch
from tests.unit.program.ops.checking import StandInPlace

WORDS, WIDE, START, END, BEAM, LONGEST = 7, 5, 0, 1, 3, 6
PARAMETERS = {"emb": (WORDS, WIDE), "of_state": (WIDE, WIDE), "of_word": (WIDE, WIDE), "state_bias": (WIDE,),
              "out": (WIDE, WORDS), "out_bias": (WORDS,)}


def decoder():
    """The decoding loop of the machine-translation guide, with one projection as its decoder."""
    context = data("context", [WIDE])
    counter = fill_constant([1], "int64", 0, force_cpu=True)
    limit = fill_constant([1], "int64", LONGEST)
    states, ids, scores = create_array("float32"), create_array("int64"), create_array("float32")
    array_write(context, array=states, i=counter)
    array_write(data("init_ids", [1], dtype="int64", lod_level=2), array=ids, i=counter)
    array_write(data("init_scores", [1], lod_level=2), array=scores, i=counter)
    going_on = less_than(counter, limit)
    with While(cond=going_on).block():
        pre_ids, pre_state = array_read(array=ids, i=counter), array_read(array=states, i=counter)
        pre_score = array_read(array=scores, i=counter)
        expanded = sequence_expand(pre_state, pre_score)
        word = embedding(input=pre_ids, size=[WORDS, WIDE], param_attr="emb")
        state = fc([expanded, word], WIDE, act="tanh", param_attr=["of_state", "of_word"], bias_attr="state_bias")
        score = fc(lod_reset(state, y=pre_score), WORDS, act="softmax", param_attr="out", bias_attr="out_bias")
        best_scores, best_ids = topk(score, k=BEAM)
        totals = elementwise_add(log(best_scores), reshape(pre_score, shape=[-1]), axis=0)
        chosen_ids, chosen_scores = beam_search(pre_ids, pre_score, best_ids, totals, BEAM, end_id=END, level=0)
        increment(counter, value=1, in_place=True)
        array_write(state, array=states, i=counter)
        array_write(chosen_ids, array=ids, i=counter)
        array_write(chosen_scores, array=scores, i=counter)
        in_time, left = less_than(counter, limit), logical_not(is_empty(chosen_ids))
        logical_and(in_time, left, out=going_on)
    return beam_search_decode(ids=ids, scores=scores, beam_size=BEAM, end_id=END)


def search(context, weights):
    """Sentence objects instead of tensors: [(words, score)], best first."""
    beams = [([START], 0.0, context)]
    for _ in range(LONGEST):
        found = []
        for words, total, state in beams:
            if words[-1] == END:
                found.append((words, total, state))
                continue
            after = np.tanh(state @ weights["of_state"] + weights["emb"][words[-1]] @ weights["of_word"]
                            + weights["state_bias"])
            logits = after @ weights["out"] + weights["out_bias"]
            probabilities = np.exp(logits) / np.exp(logits).sum()
            for word in np.argsort(-probabilities)[:BEAM]:
                found.append((words + [int(word)], total + np.log(probabilities[word]), after))
        beams = sorted(found, key=lambda beam: -beam[1])[:BEAM]
        if all(words[-1] == END for words, _, _ in beams):
            break
    return [(words, total) for words, total, _ in beams]


def decode(program, startup, outputs, seed, place):
    rng, scope, executor = np.random.default_rng(seed), Scope(), Executor(place)
    executor.run(startup, scope=scope)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in PARAMETERS.items()}
    for name, value in weights.items():
        scope.find_var(name).get_tensor().set(value)
    count = 1 + seed % 4
    context, lod = rng.normal(size=(count, WIDE)).astype(np.float32), [[1] * count, [1] * count]
    feed = {"context": context, "init_ids": create_lod_tensor(np.full((count, 1), START), lod),
            "init_scores": create_lod_tensor(np.zeros((count, 1), np.float32), lod)}
    words, scores = executor.run(program, feed=feed, fetch_list=list(outputs), scope=scope, return_numpy=False)
    return words, scores, [search(one, weights) for one in context]


@pytest.fixture(scope="module")
def built():
    with from_scratch() as (program, startup):
        outputs = decoder()
    return program, startup, outputs


def check_sentences(words, scores, expected):
    sources, lengths = words.recursive_sequence_lengths()
    assert sources == [len(found) for found in expected]
    cuts = np.cumsum(lengths)[:-1]
    got = list(zip(np.split(np.asarray(words), cuts), np.split(np.asarray(scores), cuts)))
    for (some_words, some_scores), (want_words, want_score) in zip(got, (one for found in expected for one in found)):
        assert some_words.tolist() == want_words
        np.testing.assert_allclose(some_scores[-1], want_score, rtol=1e-4)


@pytest.mark.parametrize("seed", range(12))
def test_a_decoding_loop_finds_what_a_plain_beam_search_finds(built, seed):
    check_sentences(*decode(*built, seed, CPUPlace()))


def test_some_of_these_searches_end_early_and_some_are_cut(built):
    found = [one for seed in range(12) for source in decode(*built, seed, CPUPlace())[2] for one in source]
    assert any(words[-1] == END and len(words) < LONGEST for words, _ in found)
    assert any(words[-1] != END and len(words) == LONGEST + 1 for words, _ in found)


def test_the_loop_runs_on_a_device_too(built):
    check_sentences(*decode(*built, 3, StandInPlace()))


def test_the_layer_returns_parents_where_they_are_asked_for():
    ids, scores = data("ids", [1], dtype="int64", lod_level=2), data("scores", [1], lod_level=2)
    candidates = data("candidates", [4])
    found = beam_search(ids, scores, None, candidates, 2, END, return_parent_idx=True)
    assert [var.shape for var in found] == [(-1, 1), (-1, 1), (-1,)]
    assert [var.dtype.value for var in found] == ["int64", "float32", "int32"]
    assert all(var.stop_gradient for var in found)
    op = found[0].op
    assert op.attr("is_accumulated") is True and op.attr("level") == 0 and not op.input("ids")
