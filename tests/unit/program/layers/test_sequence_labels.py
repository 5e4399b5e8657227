"""Layers of program/layers/sequence_labels.py: what they return, and that taggers and recognisers train."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.metrics import ChunkEvaluator, EditDistance
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, create_lod_tensor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import sequence_labels as layers
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.optimizers.plain import Adam

WORDS, TAGS, PLACE = 12, 5, fluid.CPUPlace()


def trained(loss, feeds, rate=0.1):
    """An executor, its scope, and the first and last cost."""
    default_main_program().random_seed = default_startup_program().random_seed = 1
    average = mean(loss)
    Adam(rate).minimize(average)
    executor, scope = Executor(), Scope()
    executor.run(default_startup_program(), scope=scope)
    costs = [executor.run(feed=feed, fetch_list=[average], scope=scope)[0].item() for feed in feeds]
    return executor, scope, costs[0], costs[-1]


def sentence(rng, lengths):
    """Words that say their tag, and some of which only the tag before says it: the next one."""
    words, starts = rng.integers(0, WORDS, sum(lengths)), set(np.cumsum(lengths) - lengths)
    tags = words % (TAGS - 1)
    for i in np.flatnonzero(words >= WORDS - 4):
        tags[i] = 0 if i in starts else (tags[i - 1] + 1) % (TAGS - 1)
    return tuple(create_lod_tensor(one.reshape(-1, 1), [list(lengths)], PLACE) for one in (words, tags))


def tagger():
    word = data("word", [1], dtype="int64", lod_level=1)
    tag = data("tag", [1], dtype="int64", lod_level=1)
    return word, tag, fc(embedding(word, [WORDS, 8]), TAGS)


def test_a_tagger_learns_and_decodes_what_it_learnt():
    word, tag, scores = tagger()
    cost = layers.linear_chain_crf(scores, tag, param_attr=fluid.ParamAttr(name="crfw", learning_rate=1.0))
    path = layers.crf_decoding(scores, param_attr=fluid.ParamAttr(name="crfw"))
    hits = layers.crf_decoding(scores, "crfw", label=tag)
    found = layers.chunk_eval(path, tag, "plain", TAGS - 1)
    assert cost.shape == (-1, 1) and default_main_program().global_block().var("crfw").shape == (TAGS + 2, TAGS)
    test = default_main_program().clone(for_test=True)
    rng = np.random.default_rng(0)
    feeds = [dict(zip(("word", "tag"), sentence(rng, rng.integers(1, 7, 8)))) for _ in range(150)]
    executor, scope, first, last = trained(cost, feeds)
    assert last < first / 4
    values = executor.run(test, feeds[0], [path, hits, *found], scope=scope, return_numpy=False)
    assert values[0].recursive_sequence_lengths() == feeds[0]["word"].recursive_sequence_lengths()
    right = np.array(values[0]) == np.array(feeds[0]["tag"])
    np.testing.assert_array_equal(np.array(values[1]), right)
    assert right.mean() > 0.85
    metric = ChunkEvaluator()
    metric.update(*(np.array(one) for one in values[5:]))
    assert metric.eval() == pytest.approx([np.array(one).item() for one in values[2:5]])


def test_padded_sequences_cost_what_they_do_with_a_lod():
    rng = np.random.default_rng(0)
    x, tags = rng.normal(size=(2, 3, TAGS)).astype("float32"), rng.integers(0, TAGS, (2, 3))
    padded = layers.linear_chain_crf(data("x", [3, TAGS]), data("tags", [3], dtype="int64"), "crfw",
                                     length=data("length", [1], dtype="int64"))
    ragged = layers.linear_chain_crf(data("rows", [TAGS], lod_level=1),
                                     data("row_tags", [1], dtype="int64", lod_level=1),
                                     "crfw")
    executor, scope = Executor(), Scope()
    executor.run(default_startup_program(), scope=scope)
    feed = {"x": x, "tags": tags, "length": np.array([[3], [1]]),
            "rows": create_lod_tensor(np.concatenate([x[0], x[1, :1]]), [[3, 1]], PLACE),
            "row_tags": create_lod_tensor(np.append(tags[0], tags[1, 0]).reshape(-1, 1), [[3, 1]], PLACE)}
    one, other = executor.run(feed=feed, fetch_list=[padded, ragged], scope=scope)
    np.testing.assert_allclose(one, other, rtol=1e-6)


def recognised(rng, count=8):
    """Noisy frames, each a class or the blank between, and the classes."""
    frames, labels, lengths, label_lengths = [], [], [], []
    for _ in range(count):
        word = rng.integers(1, TAGS, rng.integers(1, 4))
        shown = np.concatenate([[c] * rng.integers(1, 3) + [0] for c in word])
        frames.append(np.eye(TAGS)[shown] + rng.normal(size=(len(shown), TAGS)) * 0.1)
        labels.append(word)
        lengths.append(len(shown))
        label_lengths.append(len(word))
    return {"frames": create_lod_tensor(np.concatenate(frames).astype("float32"), [lengths], PLACE),
            "labels": create_lod_tensor(np.concatenate(labels).reshape(-1, 1), [label_lengths], PLACE)}


def test_a_recogniser_learns_and_decodes_what_it_learnt():
    frames, labels = data("frames", [TAGS], lod_level=1), data("labels", [1], dtype="int64", lod_level=1)
    scores = fc(frames, TAGS)
    cost = layers.warpctc(scores, labels, blank=0)
    decoded = layers.ctc_greedy_decoder(scores, blank=0)
    distance, count = layers.edit_distance(decoded, labels, normalized=False)
    test = default_main_program().clone(for_test=True)
    rng = np.random.default_rng(0)
    feeds = [recognised(rng) for _ in range(150)]
    executor, scope, first, last = trained(cost, feeds)
    assert cost.shape == (-1, 1) and last < first / 4
    distances, counted = executor.run(test, feeds[0], [distance, count], scope=scope)
    metric = EditDistance()
    metric.update(distances, counted)
    mean_distance, wrong = metric.eval()
    assert counted.item() == 8 and mean_distance < 0.2 and wrong < 0.2


def test_padded_frames_are_decoded_to_padded_labels_and_their_lengths():
    frames = np.eye(3, dtype="float32")[[[1, 1, 0, 2], [0, 2, 2, 1]]]
    out, left = layers.ctc_greedy_decoder(data("frames", [4, 3]), 0, data("length", [1], dtype="int64"),
                                          padding_value=9)
    ids, counts = Executor().run(feed={"frames": frames, "length": np.array([[4], [3]])}, fetch_list=[out, left])
    assert ids.tolist() == [[1, 2, 9, 9], [2, 9, 9, 9]] and counts.tolist() == [[2], [1]]


def test_tokens_to_be_ignored_count_in_no_distance():
    hyp, ref = (data(name, [1], dtype="int64", lod_level=1) for name in ("hyp", "ref"))
    distance, _ = layers.edit_distance(hyp, ref, normalized=True, ignored_tokens=[0])
    feed = {"hyp": create_lod_tensor(np.array([[1], [0], [2]]), [[3]], PLACE),
            "ref": create_lod_tensor(np.array([[0], [1], [3]]), [[3]], PLACE)}
    assert Executor().run(feed=feed, fetch_list=[distance])[0].tolist() == [[0.5]]
