"""When workers that train by themselves average their parameters: plain numbers, the same on all of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_STEPS = 16  # between two averagings, however well it goes


def is_due(step: int, last: int, every: int, begin: int) -> bool:
    """Whether step ``step``, counted from 1, ends with an averaging; ``last`` is the one that did so last."""
    return step <= begin or step - last == every


def next_every(first_every: int, first_rate: float, rate: float, first_loss: float, loss: float) -> int:
    """How many steps to the next averaging: fewer as the loss falls, more as the learning rate does."""
    denominator = rate * first_loss
    square = first_rate * loss / denominator * first_every if denominator else math.nan
    # A loss that is not finite, or below zero, says nothing: average after each step, as the original comes to.
    if not 0 <= square < math.inf:
        return 1
    return min(MOST_STEPS, max(1, math.ceil(math.sqrt(square))))


def mean_in_order(values: Sequence[float]) -> float:
    """The mean of the workers' numbers, added up from the first to the last."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total / len(values)
