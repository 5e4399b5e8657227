"""Metrics of a whole job: every worker's counts combined, then the number computed from the totals.

What is given is an array, a variable, or the name of one whose value lies in the scope. Workers are
combined by ``util.all_reduce``; a job of one worker combines nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.paddle2 import paddle_fleet
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.variable import Variable

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import ArrayLike

    from fleet_mpi.program.engine.scope import Scope


def sum(input: ArrayLike | str, scope: Scope | None = None, util: Any = None) -> np.ndarray:
    """The sum over the workers, element by element."""
    return _combined(input, scope, util, "sum")


def max(input: ArrayLike | str, scope: Scope | None = None, util: Any = None) -> np.ndarray:
    """The largest over the workers, element by element."""
    return _combined(input, scope, util, "max")


def min(input: ArrayLike | str, scope: Scope | None = None, util: Any = None) -> np.ndarray:
    """The smallest over the workers, element by element."""
    return _combined(input, scope, util, "min")


def auc(stat_pos: ArrayLike | str, stat_neg: ArrayLike | str, scope: Scope | None = None, util: Any = None) -> float:
    """Area under the ROC curve from the counts of positives and negatives per bucket of prediction.

    The counts are those that ``layers.auc`` keeps, shape [1, buckets]. 0.5 where one class is absent.
    """
    positives, negatives = (_buckets(_combined(given, scope, util, "sum")) for given in (stat_pos, stat_neg))
    if positives.size != negatives.size:
        raise UsageError(f"auc: expected as many buckets of positives as of negatives, got {positives.size} and "
                         f"{negatives.size}")
    above = np.cumsum(positives)
    total = above[-1] * negatives.sum()
    if total == 0:
        return 0.5
    # A trapezium per bucket, from the highest prediction down: its width the negatives in it, its sides the
    # positives found before and after it.
    return float(np.dot(negatives, above - positives / 2) / total)


def mae(abserr: ArrayLike | str, total_ins_num: ArrayLike | str, scope: Scope | None = None, util: Any = None) -> float:
    """Mean absolute error from the sum of absolute errors and the number of samples."""
    return _mean(abserr, total_ins_num, scope, util)


def mse(sqrerr: ArrayLike | str, total_ins_num: ArrayLike | str, scope: Scope | None = None, util: Any = None) -> float:
    """Mean squared error from the sum of squared errors and the number of samples."""
    return _mean(sqrerr, total_ins_num, scope, util)


def rmse(sqrerr: ArrayLike | str, total_ins_num: ArrayLike | str, scope: Scope | None = None,
         util: Any = None) -> float:
    """Root of the mean squared error."""
    return math.sqrt(_mean(sqrerr, total_ins_num, scope, util))


def acc(correct: ArrayLike | str, total: ArrayLike | str, scope: Scope | None = None, util: Any = None) -> float:
    """Share of samples that were right."""
    return _mean(correct, total, scope, util)


def _buckets(counts: np.ndarray) -> np.ndarray:
    """The first row, from the highest prediction down."""
    return np.atleast_2d(counts)[0].astype(np.float64)[::-1]


def _mean(errors: Any, count: Any, scope: Scope | None, util: Any) -> float:
    samples = _first(count, scope, util)
    if samples == 0:
        raise UsageError("fleet.metrics: no sample was counted, so there is no mean")
    return _first(errors, scope, util) / samples


def _first(given: Any, scope: Scope | None, util: Any) -> float:
    return float(_combined(given, scope, util, "sum").reshape(-1)[0])


def _combined(given: Any, scope: Scope | None, util: Any, mode: str) -> np.ndarray:
    return np.asarray((util or paddle_fleet.util).all_reduce(_value(given, scope), mode))


def _value(given: Any, scope: Scope | None) -> np.ndarray:
    """The array meant: itself, or the value of a variable in the scope."""
    if isinstance(given, (Variable, str)):
        name = given if isinstance(given, str) else given.name
        holder = (scope or global_scope()).find_var(name)
        if holder is None:
            raise UsageError(f"fleet.metrics: the scope has no variable {name!r}: run the program first")
        return holder.get_tensor().numpy()
    return np.asarray(given)
