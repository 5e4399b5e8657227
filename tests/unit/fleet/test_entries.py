"""When a row of a sparse table comes to be."""

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.entries import CountFilterEntry, ProbabilityEntry


def test_entries_describe_themselves_for_the_op():
    assert ProbabilityEntry(0.5)._to_attr() == "probability_entry:0.5"
    assert CountFilterEntry(3)._to_attr() == "count_filter_entry:3"


@pytest.mark.parametrize("make, value", ((ProbabilityEntry, 0.0), (ProbabilityEntry, 1.5), (ProbabilityEntry, 1),
                                         (CountFilterEntry, -1), (CountFilterEntry, 1.0), (CountFilterEntry, True)))
def test_impossible_entries_are_refused(make, value):
    with pytest.raises(UsageError, match=f"{make.__name__}: expected"):
        make(value)
