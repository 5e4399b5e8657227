"""Ids and labels that name nothing: the same sentence on a device as on the host, behind the fetches, without a wait in
the op."""

import gc

import numpy as np
import pytest

from fleet_mpi import testing
from fleet_mpi.arrays import to_host
from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels.reference import rows
from fleet_mpi.program.engine import transfers
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.testing import streams
from tests.unit.program.ops.checking import Built, Case, StandInPlace

X = np.arange(12.0).reshape(3, 4) / 10
LABELS = np.array([[1], [4], [9]])  # of 4 classes
SOFTMAX = Case("softmax_with_cross_entropy", {"Logits": X, "Label": LABELS}, outputs={"Softmax": [0], "Loss": [0]})
LOOKUP = Case("lookup_table_v2", {"W": X, "Ids": np.array([2, 0, 3, -1])}, outputs={"Out": [0]})

CASES = [
    SOFTMAX, LOOKUP,
    Case("softmax_with_cross_entropy", {"Logits": X, "Label": np.array([[-100], [-1], [0]])}, {"ignore_index": -100},
         outputs={"Softmax": [0], "Loss": [0]}),
    Case("cross_entropy", {"X": X, "Label": LABELS}, outputs={"Y": [0]}),
    Case("cross_entropy2", {"X": X, "Label": LABELS}, outputs={"Y": [0], "MatchX": [0], "XShape": [0]}),
    Case("lookup_table", {"W": X, "Ids": np.array([[2], [3]])}, {"padding_idx": 1}, outputs={"Out": [0]}),
    Case("gather", {"X": X, "Index": np.array([0, -1])}, outputs={"Out": [0]}),
    Case("gather", {"X": X, "Index": np.array([0, 4])}, {"axis": 1}, outputs={"Out": [0]}),
    Case("gather_nd", {"X": X, "Index": np.array([[1, 1], [2, 4]])}, outputs={"Out": [0]}),
    Case("scatter", {"X": X, "Ids": np.array([3, 0]), "Updates": X[:2]}, outputs={"Out": [0]}),
    Case("scatter", {"X": X, "Ids": np.array([0, 3]), "Updates": X[:2]}, {"overwrite": False}, outputs={"Out": [0]}),
    Case("scatter_nd_add", {"X": X, "Index": np.array([[3], [0]]), "Updates": X[:2]}, outputs={"Out": [0]}),
    Case("one_hot_v2", {"X": np.array([1, 5], np.int32)}, {"depth": 3}, outputs={"Out": [0]}),
    Case("index_sample", {"X": X, "Index": np.array([[1], [4], [0]])}, outputs={"Out": [0]}),
    Case("multiplex", {"X": [X, X], "Ids": np.array([[0], [2], [1]])}, outputs={"Out": [0]}),
    Case("nll_loss", {"X": X, "Label": np.array([0, -100, 7])}, outputs={"Out": [0], "Total_weight": [0]}),
    Case("bpr_loss", {"X": X, "Label": LABELS}, outputs={"Y": [0]}),
    Case("mean_iou", {"Predictions": np.array([1, 5]), "Labels": np.array([1, 0])}, {"num_classes": 3},
         outputs={"OutMeanIou": [0], "OutWrong": [0], "OutCorrect": [0]}),
    Case("sequence_scatter", {"X": X, "Ids": (np.array([[0], [4], [1]]), [[1, 1, 1]]),
                              "Updates": (X[:, :1], [[1, 1, 1]])}, outputs={"Out": [0]}),
    Case("hierarchical_sigmoid", {"X": X, "W": np.ones((5, 4)), "Label": np.array([[0], [6], [1]])},
         {"num_classes": 6}, outputs={"Out": [0], "PreOut": [0]}),
]


def fetched(built):
    return [name for names in built.outputs.values() for name in names[:1]][:1]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_a_device_says_what_the_host_says(case):
    built = Built(case)
    with pytest.raises(ProgramError) as on_host:
        built.run(fetched(built))
    with pytest.raises(ProgramError) as on_device:
        built.run(fetched(built), StandInPlace())
    assert str(on_device.value) == str(on_host.value)
    assert "failed: " not in str(on_host.value), "an error of numpy's, not a sentence of ours"


@pytest.fixture
def copies(monkeypatch):
    """What came to the host: the arrays that were asked for, the bytes of copies to pinned memory."""
    seen, real, copy = [], testing.device.asnumpy, streams.Memory.copy_to_host_async
    monkeypatch.setattr(testing.device, "asnumpy", lambda a: seen.append(a) or real(a))
    monkeypatch.setattr(streams.Memory, "copy_to_host_async",
                        lambda memory, mem, size, stream=None: seen.append(size) or copy(memory, mem, size, stream))
    return seen


def test_the_note_comes_to_the_host_with_the_fetch_by_one_copy_and_one_wait(copies, monkeypatch):
    built = Built(Case("lookup_table_v2", {"W": X, "Ids": np.array([2, 0])}, outputs={"Out": [0]}))
    executor, waits, wait = Executor(StandInPlace()), [], streams.Stream.synchronize
    monkeypatch.setattr(streams.Stream, "synchronize", lambda stream: waits.append(stream) or wait(stream))
    for _ in range(2):
        copies.clear(), waits.clear()
        executor.run(built.program, feed=built.feed, fetch_list=fetched(built), scope=built.scope)
    assert copies == [transfers.HEAD_BYTES + X[[2, 0]].nbytes] and len(waits) == 1


def test_a_run_without_fetches_waits_for_nothing_and_the_next_one_raises_once(copies):
    built = Built(LOOKUP)
    keeps = built.program.global_block()
    keeps.var("Out_out_0").persistable = True  # else the op would not run
    executor = Executor(StandInPlace())

    def run(ids, fetches):
        return executor.run(built.program, feed={**built.feed, "Ids_0": np.array(ids)}, fetch_list=fetches,
                            scope=built.scope)
    run([0, 1, 2, 2], [])
    copies.clear()
    run([0, 1, 5, 2], [])
    assert not copies
    with pytest.raises(ProgramError, match="id 5 at position 2 is outside the table 'W_0' of 3 rows"):
        run([0, 1, 2, 2], fetched(built))
    np.testing.assert_array_equal(run([0, 1, 2, 2], fetched(built))[0], X[[0, 1, 2, 2]])


def test_what_was_noted_before_its_plan_went_is_not_lost():
    built = Built(LOOKUP)
    built.program.global_block().var("Out_out_0").persistable = True
    executor = Executor(StandInPlace())
    executor.run(built.program, feed=built.feed, scope=built.scope)
    executor.compiled(built.program, built.scope).plans.clear()
    gc.collect()
    with pytest.raises(ProgramError, match="id 3 at position 2 of an input of a run before this one"):
        executor.run(built.program, feed={**built.feed, "Ids_0": np.array([0] * 4)}, fetch_list=fetched(built),
                     scope=built.scope)


def test_the_first_op_in_order_is_the_one_that_is_named():
    note = testing.device.zeros(rows.NOTE_SIZE, "int64")
    for number, ids in ((1, [0, 1]), (2, [[1], [7], [-3]]), (3, [-1])):
        rows.note_outside(testing.device.asarray(np.array(ids)), 0, 2, 0, number, note)
    assert to_host(note)[:3].tolist() == [2, 1, 7]


def test_an_id_beyond_32_bits_is_named_in_full():
    note = testing.device.zeros(rows.NOTE_SIZE, "int64")
    rows.note_outside(testing.device.asarray(np.array([1, 2 ** 62])), 0, 2, 0, 1, note)
    assert to_host(note)[:3].tolist() == [1, 1, 2 ** 62]
