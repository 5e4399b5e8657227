"""Ops of program/ops/beam_search.py, against beam searches in plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace
from fleet_mpi.program.engine.scope import Scope, Tensor
from fleet_mpi.program.graph.program import Program
from tests.unit.program.ops.checking import Case, StandInPlace, check_forward, checks

END = 1


def one_step(inputs, attrs):
    """Candidate by candidate, with Python's sort; returns the outputs and the lengths of their levels."""
    (pre_ids, (sources, rows)), (pre_scores, _) = inputs["pre_ids"], inputs["pre_scores"]
    scores = inputs["scores"][0]
    chosen, row = {number: [] for number in range(len(pre_ids))}, 0
    prefixes = [sum(rows[begin:begin + count]) for begin, count in zip(np.cumsum([0] + sources), sources)]
    for count in prefixes:
        found = []
        for prefix in range(row, row + count):
            for column in range(scores.shape[1]):
                word = inputs["ids"][0][prefix, column] if "ids" in inputs else column
                score = scores[prefix, column] if attrs.get("is_accumulated", True) \
                    else pre_scores[prefix, 0] + np.log(scores[prefix, column])
                if pre_ids[prefix, 0] == END:
                    word, score = END, pre_scores[prefix, 0]
                found.append((-score, -prefix, column, word))
                if pre_ids[prefix, 0] == END:
                    break
        best = sorted(found)[:attrs["beam_size"]]
        if not all(word == END and pre_ids[-prefix, 0] == END for _, prefix, _, word in best):
            for score, prefix, _, word in best:
                chosen[-prefix].append((word, -score))
        row += count
    flat = [(word, score, prefix) for prefix, some in chosen.items() for word, score in some]
    words, totals, parents = (np.array(part) for part in zip(*flat)) if flat else (np.zeros(0),) * 3
    return ({"selected_ids": words.reshape(-1, 1), "selected_scores": totals.reshape(-1, 1), "parent_idx": parents},
            [prefixes, [len(some) for some in chosen.values()]])


def case(sources, rows, pre_ids, beam_size, seed=0, candidates=3, **attrs):
    rng = np.random.default_rng(seed)
    count = sum(rows)
    lod = [sources, rows]
    inputs = {"pre_ids": (np.array(pre_ids).reshape(-1, 1), lod),
              "pre_scores": (np.log(rng.uniform(0.1, 1, (count, 1))), lod),
              "ids": (rng.integers(0, 9, (count, candidates)), lod),
              "scores": (rng.uniform(0.1, 1, (count, candidates)), lod)}
    if attrs.get("is_accumulated", True):
        inputs["scores"] = (np.log(inputs["scores"][0]), lod)
    attrs = {"beam_size": beam_size, "end_id": END, "level": 0, **attrs}
    expected, lengths = one_step(inputs, attrs)
    return Case("beam_search", inputs, attrs, expected, note=f"{sources}{rows}beam{beam_size}",
                lods={"selected_ids": lengths, "selected_scores": lengths, "parent_idx": []})


CASES = [case([1, 1], [1, 1], [5, 6], 2), case([1, 1], [2, 2], [5, 6, 7, 8], 2, 1), case([1], [3], [5, END, 7], 3, 2),
         case([2, 2], [1, 1, 2, 0], [5, END, 7, END], 2, 3), case([1, 1], [2, 2], [END, END, 7, 8], 2, 4),
         case([1, 1], [2, 2], [5, 6, 7, 8], 2, 5, is_accumulated=False),
         case([1, 1], [0, 2], [5, 6], 4, 6), case([1], [2], [END, END], 2, 7)]


def without_ids():
    made = case([1, 1], [2, 2], [5, 6, 7, 8], 2, 8)
    del made.inputs["ids"]
    made.expect = one_step(made.inputs, made.attrs)[0]
    return made


CASES.append(without_ids())

test_forward, test_device = checks(CASES)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=3), st.integers(1, 4),
       st.integers(0, 99))
def test_any_step_equals_a_sort_of_all_candidates(sources, beam_size, seed):
    rows = [count for some in sources for count in some]
    pre_ids = np.random.default_rng(seed).integers(0, 4, sum(rows))
    check_forward(case([len(some) for some in sources], rows, pre_ids, beam_size, seed, candidates=2))


def test_of_equal_scores_the_later_prefix_wins_then_the_earlier_candidate():
    equal = case([1], [2], [5, 6], 2)
    equal.inputs["scores"] = (np.zeros((2, 3)), [[1], [2]])
    equal.inputs["ids"] = (np.array([[2, 3, 4], [5, 6, 7]]), [[1], [2]])
    equal.expect = {"selected_ids": np.array([[5], [6]]), "selected_scores": np.zeros((2, 1)),
                    "parent_idx": np.array([1, 1])}
    equal.lods = {"selected_ids": [[2], [0, 2]]}
    check_forward(equal)


def test_scores_that_lost_their_lod_take_that_of_the_ids():
    lost = case([1, 1], [2, 2], [5, 6, 7, 8], 2)
    lost.inputs["scores"] = lost.inputs["scores"][0]
    check_forward(lost)


def test_a_first_step_without_lod_is_told_how_to_begin():
    bare = case([1, 1], [1, 1], [5, 6], 2)
    bare.inputs = {slot: value[0] for slot, value in bare.inputs.items()}
    with pytest.raises(ProgramError, match=r"\[\[1\] \* batch, \[1\] \* batch\]"):
        check_forward(bare)


def decoded(ids, scores, place=None, beam_size=2):
    """Run beam_search_decode over lists of tensors that lie in the scope."""
    program, scope = Program(), Scope()
    block = program.global_block()
    for name, steps, dtype in (("ids", ids, "int64"), ("scores", scores, "float64")):
        block.create_var(name=name, dtype=dtype, shape=(-1, 1), type="lod_tensor_array")
        scope.var(name).value = steps
    for name in ("words", "totals"):
        block.create_var(name=name, dtype=None)
    block.append_op("beam_search_decode", {"Ids": ["ids"], "Scores": ["scores"]},
                    {"SentenceIds": ["words"], "SentenceScores": ["totals"]}, {"beam_size": beam_size, "end_id": END})
    return Executor(place or CPUPlace()).run(program, fetch_list=["words", "totals"], scope=scope, return_numpy=False)


def steps_of(*steps):
    """Tensors of ids and of scores (id / 10 + step) for each (ids, level lengths)."""
    made = []
    for number, (words, lengths) in enumerate(steps):
        lod = Tensor()
        lod.set_recursive_sequence_lengths(lengths)
        column = np.array(words).reshape(-1, 1)
        made.append((Tensor(column, lod.lod_offsets), Tensor(column / 10 + number, lod.lod_offsets)))
    return [list(part) for part in zip(*made)]


# Two sources. The first: 3 -> 4 -> (1 | 5 -> 1); the second: 3 -> (6 -> 8 | 7 -> 9), cut off at the last step.
SEARCH = [([3, 3], [[1, 1], [1, 1]]),
          ([4, 6, 7], [[1, 1], [1, 2]]),
          ([1, 5, 8, 9], [[1, 2], [2, 1, 1]]),
          ([1, 1, 9, 8], [[2, 2], [1, 1, 1, 1]])]


@pytest.mark.parametrize("place", [CPUPlace(), StandInPlace()], ids=["host", "device"])
def test_sentences_are_read_along_their_prefixes_best_first(place):
    words, totals = decoded(*steps_of(*SEARCH), place)
    assert words.recursive_sequence_lengths() == totals.recursive_sequence_lengths() == [[2, 2], [3, 4, 4, 4]]
    assert np.asarray(words).tolist() == [3, 4, 1, 3, 4, 5, 1, 3, 6, 8, 9, 3, 7, 9, 8]
    np.testing.assert_allclose(totals, [0.3, 1.4, 3.1, 0.3, 1.4, 2.5, 3.1, 0.3, 1.6, 2.8, 3.9, 0.3, 1.7, 2.9, 3.8])


def test_a_source_that_ended_early_keeps_its_sentences():
    words, _ = decoded(*steps_of(([3, 3], [[1, 1], [1, 1]]), ([1, 6], [[1, 1], [1, 1]]), ([7], [[1, 1], [0, 1]])))
    assert words.recursive_sequence_lengths() == [[1, 1], [2, 3]]
    assert np.asarray(words).tolist() == [3, 1, 3, 6, 7]


def test_unequal_numbers_of_steps_are_refused():
    some_ids, scores = steps_of(*SEARCH)
    with pytest.raises(ProgramError, match="got 4 and 3"):
        decoded(some_ids, scores[:3])


def test_a_step_that_is_no_beam_search_is_named():
    some_ids, scores = steps_of(*SEARCH)
    some_ids[1].lod_offsets = ()
    with pytest.raises(ProgramError, match="step 1: expected ids with two LoD levels"):
        decoded(some_ids, scores)
