"""Merged gradients: sums in order, means, rows by id, in memory of their own."""

import numpy as np

from fleet_mpi.arrays import Rows
from fleet_mpi.modes.merging import Merged
from fleet_mpi.parameter_server.flat import FlatLayout
from fleet_mpi.placement import Variable

LAYOUT = FlatLayout((Variable("a", (3,)), Variable("b", (2, 2), "float64"), Variable("c", (5,))))


def gradients(value):
    """A flat array with this value everywhere."""
    flat = LAYOUT.new_array()
    for array in LAYOUT.views(flat).values():
        array[...] = value
    return flat


def rows(ids, value):
    """Rows of two elements of a table of ten."""
    return Rows(np.array(ids), np.full((len(ids), 2), value, "f4"), 10)


def test_variables_of_every_type_are_summed_each_in_its_type():
    merged = Merged(LAYOUT)
    for value in (0.1, 0.2, 0.3):
        merged.add(gradients(value), [])
    found = LAYOUT.views(merged.flat)
    single, double = np.float32(0.1) + np.float32(0.2) + np.float32(0.3), 0.1 + 0.2 + 0.3
    assert (found["a"] == single).all() and (found["b"] == double).all() and (found["c"] == single).all()
    assert merged.count == 3


def test_the_mean_divides_dense_values_and_rows_by_the_number_of_batches():
    merged = Merged(LAYOUT)
    for table in (rows([4, 1], 3.0), rows([1], 1.0), None, rows([0], 2.0)):
        merged.add(gradients(2.0), [table])
    merged.average()
    assert (LAYOUT.views(merged.flat)["b"] == 2.0).all()
    assert merged.rows[0].ids.tolist() == [4, 1, 0]
    assert merged.rows[0].values[:, 0].tolist() == [0.75, 1.0, 0.5]


def test_rows_may_come_late_or_never():
    merged = Merged(LAYOUT)
    merged.add(gradients(0.0), [None, None])
    merged.add(gradients(0.0), [rows([2], 1.0), None])
    assert merged.rows[0].ids.tolist() == [2] and merged.rows[1] is None


def test_what_was_added_may_change_afterwards():
    merged, flat, table = Merged(LAYOUT), gradients(1.0), rows([5], 1.0)
    merged.add(flat, [table])
    flat[...] = 0
    table.values[...] = 9.0
    table.ids[...] = 0
    assert (LAYOUT.views(merged.flat)["c"] == 1.0).all()
    assert (merged.rows[0].ids.tolist(), merged.rows[0].values.tolist()) == ([5], [[1.0, 1.0]])


def test_after_clear_nothing_is_left():
    merged = Merged(LAYOUT)
    merged.add(gradients(5.0), [rows([1], 1.0)], now=3.0)
    merged.clear()
    merged.add(gradients(1.0), [None], now=4.0)
    assert (LAYOUT.views(merged.flat)["a"] == 1.0).all() and merged.rows == [None]
    assert (merged.count, merged.last) == (1, 4.0)
