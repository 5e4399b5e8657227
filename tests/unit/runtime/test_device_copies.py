"""A worker's flat arrays on a device and on the host; whole trainings so: ``test_sessions_on_devices.py``."""

import numpy as np
import pytest

from fleet_mpi.arrays import Rows, to_host
from fleet_mpi.parameter_server.flat import FlatLayout
from fleet_mpi.placement.shard import Variable
from fleet_mpi.runtime.device_copies import DeviceFlat, DeviceSide, Downloads, Piece, cut
from fleet_mpi.testing import device
from fleet_mpi.update_rules import MergedRows

LAYOUT = FlatLayout([Variable("w", (40,), "float32"), Variable("b", (2,), "float32"), Variable("v", (8,), "float64")])


@pytest.fixture
def begun(monkeypatch):
    """The sizes of the copies to the host that were begun, in bytes."""
    sizes, begin = [], Downloads.begin
    monkeypatch.setattr(Downloads, "begin", lambda self, array, host: sizes.append(array.nbytes) or begin(self, array,
                                                                                                         host))
    return sizes


def flat(piece_bytes=1 << 20):
    return DeviceFlat(LAYOUT, Downloads(device), piece_bytes)


def test_pieces_are_neighbours_up_to_a_size_and_have_every_byte():
    assert cut(LAYOUT, 1) == [Piece(("w",), 0, 192), Piece(("b",), 192, 256), Piece(("v",), 256, 320)]
    assert cut(LAYOUT, 256) == [Piece(("w", "b"), 0, 256), Piece(("v",), 256, 320)]
    assert cut(LAYOUT, 320) == [Piece(("w", "b", "v"), 0, 320)]
    assert cut(FlatLayout([]), 320) == []


@pytest.mark.parametrize("piece_bytes", (1, 256, 320))
def test_what_is_on_the_device_comes_to_the_host_and_back(piece_bytes):
    here = flat(piece_bytes)
    here.views["w"][...] = 3.0
    here.views["v"][...] = 5.0
    here.gather()
    views = LAYOUT.views(here.host)
    assert views["w"].tolist() == [3] * 40 and views["b"].tolist() == [0, 0] and views["v"].tolist() == [5] * 8
    views["b"] += 7
    here.spread()
    here.settle()
    assert to_host(here.views["b"]).tolist() == [7, 7] and to_host(here.views["w"]).tolist() == [3] * 40


def test_a_piece_is_copied_when_its_last_variable_is_ready_and_only_once(begun):
    here = flat(256)
    here.ready("b")
    assert begun == []
    here.ready("w")
    assert begun == [256]
    here.gather()
    assert begun == [256, 64]
    here.gather()
    assert begun == [256, 64, 256, 64]


def test_a_step_that_was_left_by_an_error_leaves_nothing_for_the_next(begun):
    here = flat(256)
    here.ready("b")
    here.begin_step()
    here.ready("w")
    assert begun == [], "the b of this step is not computed yet"


def test_what_is_computed_after_a_fetch_does_not_change_it():
    downloads, array = Downloads(device), device.ones((4,), "float32")
    host = downloads.fetch(array)
    downloads.wait()
    array[...] = 9.0
    assert host.tolist() == [1] * 4
    strided = downloads.fetch(device.asarray(np.arange(6.0).reshape(2, 3)).T)
    downloads.wait()
    assert strided.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_rows_come_to_the_host_as_what_they_are():
    side = DeviceSide(LAYOUT, device, sends_gradients=True)
    side.take_rows("table", MergedRows(device.asarray(np.array([3, 1])), device.ones((2, 4), "float32"), 9))
    (table, here), = side.gather()
    assert table == "table" and type(here) is MergedRows and here.ids.tolist() == [3, 1] and here.height == 9
    assert type(here.values) is np.ndarray and here.values.tolist() == [[1] * 4] * 2
    assert side.gather() == []
    rows = Rows(np.array([1]), np.ones((1, 2)), 3)
    assert side.downloads.fetch_rows(rows).values is rows.values


def test_a_worker_without_dense_variables_has_nothing_to_copy(begun):
    side = DeviceSide(FlatLayout([]), device, sends_gradients=True)
    side.gather()
    side.params.spread()
    assert begun == []
