"""Row gradients whose rows are not merged, for updates on a device."""

import numpy as np
import pytest

from fleet_mpi.arrays import Rows, to_host
from fleet_mpi.program.ops.row_totals import RowTotals
from fleet_mpi.testing import device
from fleet_mpi.update_rules import RULES, MergedRows, RowMerger


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if not rule.needs_whole])
def test_on_a_device_a_rule_gives_with_totals_what_it_gives_with_merged_rows(name):
    random = np.random.default_rng(1)
    ids, values = random.integers(0, 6, 20), random.standard_normal((20, 3)).astype("float32")
    table, found = random.standard_normal((6, 3)).astype("float32"), []
    for merger in (RowMerger(), RowTotals()):
        param, rule = device.array(table), RULES[name]
        states, rate = rule.new_states(param), device.array(np.array([0.05], "float32"))
        for _ in range(2):
            rule.run(param, merger(Rows(device.array(ids), device.array(values), 6)), rate, *states)
        found.append([to_host(one).tobytes() for one in (param, *states)])
    assert found[0] == found[1]


def test_totals_are_kept_where_they_are_and_of_the_new_length_when_it_changes():
    totals = RowTotals()
    first = totals(Rows(np.array([3, 1, 3]), np.ones((3, 2)), 5))
    assert isinstance(first, MergedRows) and first.ids.tolist() == [3, 1, 3]
    assert first.values.tolist() == [[2, 2], [1, 1], [2, 2]] and totals(first) is first
    assert totals(Rows(np.array([2]), np.ones((1, 2)), 5)).values.tolist() == [[1, 1]]
