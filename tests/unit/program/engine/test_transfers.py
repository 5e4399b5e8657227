"""Feeds and fetches between the host and a device, on the stand-in, whose copies are done only when somebody waits."""

import gc

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.arrays import Rows
from fleet_mpi.program.engine import transfers
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.transfers import Transfers
from fleet_mpi.testing import device
from tests.unit.program.ops.checking import StandInPlace


@pytest.mark.parametrize("dtypes", ((), ("float32",), ("bool", "float64", "int64", "float16")), ids=str)
def test_values_come_as_they_are_with_the_note(dtypes):
    moved, random = Transfers(device), np.random.default_rng(0)
    for size in (3, 200, 5):  # its memory grows, and is used again
        expected = [random.integers(0, 2, (size, 2)).astype(dtype) for dtype in dtypes]
        moved.note[...] = size
        brought = moved.bring([device.asarray(one) for one in expected])
        assert [one.tobytes() for one in brought] == [one.tobytes() for one in expected]
        assert [(one.dtype, one.shape) for one in brought] == [(one.dtype, one.shape) for one in expected]
        assert set(moved.note_on_host.tolist()) == {size}


def test_a_strided_array_a_number_and_an_empty_array_come():
    found = device.asarray(np.arange(6.0).reshape(2, 3))
    brought = Transfers(device).bring([found.T, found.sum(), found[:0]])
    assert [one.tolist() for one in brought] == [[[0, 3], [1, 4], [2, 5]], 15, []]


def test_large_arrays_rows_and_host_arrays_are_left_alone(monkeypatch):
    monkeypatch.setattr(transfers, "LARGEST_GATHERED", 8)
    large, host = device.asarray(np.arange(3.0)), np.arange(3.0)
    rows = Rows(device.asarray(np.array([1])), large, 2)
    brought = Transfers(device).bring([large, rows, host, large[:1]])
    assert brought[0] is large and brought[1] is rows and brought[2] is host
    assert type(brought[3]) is np.ndarray


def test_what_is_noted_outlives_larger_memory():
    moved = Transfers(device)
    moved.note[...] = 7
    moved.bring([device.asarray(np.arange(1000.0))])
    assert set(moved.note_on_host.tolist()) == {7}


def test_an_upload_does_not_wait_and_later_changes_of_the_fed_array_do_not_count():
    moved, array, value = Transfers(device), device.zeros(3, "float32"), np.array([1, 2, 3])
    moved.upload(value, array)
    value[...] = 9
    again = device.zeros(3, "float32")
    moved.upload(value, again)
    assert device.asnumpy(array + again).tolist() == [10, 11, 12]


def test_an_upload_into_a_strided_array():
    array = device.zeros((3, 2), "float32")
    Transfers(device).upload(np.ones((2, 3), "float32"), array.T)
    assert device.asnumpy(array).sum() == 6


def test_runs_without_fetches_have_each_its_own_feed():
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [2], "float32")
        total = fluid.layers.create_global_var([2], 0.0, "float32", persistable=True)
        fluid.layers.assign(total + x, total)
    executor = Executor(StandInPlace())
    executor.run(startup, scope=scope)
    for step in range(5):
        executor.run(main, feed={"x": np.full(2, step, "float32")}, scope=scope)
    assert device.asnumpy(scope.array(total.name)).tolist() == [10, 10]


def test_what_a_dropped_program_was_fed_stays_until_the_device_has_read_it():
    array, fed = device.zeros(3), np.arange(3.0)
    transfers._orphans.clear()
    moved = Transfers(device)
    moved.upload(fed, array)
    (_, pinned), = moved._uploads
    del moved
    gc.collect()
    assert any(memory is pinned for _, memory in transfers._orphans)
    device.cuda.get_current_stream().synchronize()
    Transfers(device)
    assert not transfers._orphans and device.asnumpy(array).tolist() == fed.tolist()


def test_parts_of_one_piece_are_aligned_and_as_they_were_asked_for():
    likes = [np.zeros((2, 3), "float32"), np.zeros(0, "int64"), np.zeros((5, 1), "float64")]
    raw, parts = transfers.side_by_side(likes, device.zeros)
    assert [(one.shape, one.dtype) for one in parts] == [(one.shape, one.dtype) for one in likes]
    for number, part in enumerate(parts):
        part[...] = number + 1
    assert device.asnumpy(raw[:24]).view("float32").tolist() == [1] * 6
    assert device.asnumpy(raw[64:104]).view("float64").tolist() == [3] * 5
