"""What tells how much a row matters: one int32 per row, kept only where it is asked for. Knows no evictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = int(np.iinfo(np.int32).max)   # scores stay there


def last_seen(scores: np.ndarray, slots: np.ndarray, pushes: np.ndarray, update: int) -> None:
    """The number of the update that last pushed a row."""
    scores[slots] = min(update, MOST)


def count(scores: np.ndarray, slots: np.ndarray, pushes: np.ndarray, update: int) -> None:
    """How many pushes had a row."""
    scores[slots] = np.minimum(scores[slots] + pushes.astype(np.int64), MOST)


def unseen(scores: np.ndarray, slots: np.ndarray, pushes: np.ndarray, update: int) -> None:
    """How often rows were looked at for being unused since a push had this one; whoever looks counts."""
    scores[slots] = 0


# By name: called after each update with the scores of all rows, the slots of those that it had, each once, how many of
# its pushes had each, and the update's number.
SCORES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray, int], None]] = {"last_seen": last_seen, "count": count,
                                                                                   "unseen": unseen}
