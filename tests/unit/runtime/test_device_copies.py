"""Copies between a worker's device and its flat arrays; whole trainings so: ``test_sessions_on_devices.py``."""

import numpy as np

from fleet_mpi.arrays import Rows, to_host
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.runtime.device_copies import DeviceCopies, rows_on_host
from fleet_mpi.testing import device
from fleet_mpi.update_rules import MergedRows


def scope_with(**held):
    scope = Scope()
    for name, array in held.items():
        scope.var(name).put(array)
    return scope


def test_what_lies_on_the_device_goes_to_the_view_and_back_into_the_same_array():
    view, array = np.zeros(2, np.float32), device.asarray(np.array([1, 2], np.float32))
    copies = DeviceCopies(scope_with(w=array), {"w": view})
    copies.gather()
    assert view.tolist() == [1, 2]
    view += 10
    copies.spread()
    assert to_host(array).tolist() == [11, 12] and copies.scope.array("w") is array


def test_host_arrays_are_left_alone():
    view = np.zeros(2, np.float32)
    copies = DeviceCopies(scope_with(w=view, other=np.ones(2)), {"w": view, "other": np.zeros(2)})
    copies.gather()
    copies.spread()
    assert copies.scope.array("other").tolist() == [1, 1] and copies.views["other"].tolist() == [0, 0]


def test_an_array_that_moves_to_a_device_later_is_found():
    view = np.zeros(2, np.float32)
    scope = scope_with(w=view)
    copies = DeviceCopies(scope, {"w": view})
    copies.gather()
    scope.var("w").put(device.ones((2,), "float32"))
    copies.gather()
    assert view.tolist() == [1, 1]


def test_a_variable_without_a_value_is_passed_over():
    DeviceCopies(Scope(), {"w": np.zeros(2)}).gather()


def test_rows_come_to_the_host_as_what_they_are():
    there = MergedRows(device.asarray(np.array([3, 1])), device.ones((2, 4), "float32"), 9)
    here = rows_on_host(there)
    assert type(here) is MergedRows and here.ids.tolist() == [3, 1] and here.height == 9
    assert type(here.values) is np.ndarray
    rows = Rows(np.array([1]), np.ones((1, 2)), 3)
    assert rows_on_host(rows) is rows
