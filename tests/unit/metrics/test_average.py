"""A running mean with weights."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.metrics.average import WeightedAverage


def test_values_count_by_their_weight():
    average = WeightedAverage()
    average.add(1.0, 3)
    average.add(np.array([5.0]), np.array([1]))
    assert average.eval() == 2.0


def test_nothing_has_no_mean():
    average = WeightedAverage()
    average.add(1.0, 1)
    average.reset()
    with pytest.raises(UsageError, match="nothing was added yet"):
        average.eval()
