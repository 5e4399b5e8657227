"""A running mean with weights, kept by the script."""

import numpy as np

from fleet_mpi.errors import UsageError


class WeightedAverage:
    """The mean of what was added since ``reset``, by weight."""

    def __init__(self):
        self.reset()

    def reset(self):
        """Forget everything."""
        self._total = self._weight = 0.0

    def add(self, value, weight):
        """Count a number or an array, whose mean counts, with a weight."""
        self._total += float(np.mean(np.asarray(value))) * float(np.sum(np.asarray(weight)))
        self._weight += float(np.sum(np.asarray(weight)))

    def eval(self):
        """The mean so far."""
        if self._weight == 0:
            raise UsageError("WeightedAverage.eval: nothing was added yet")
        return self._total / self._weight
