"""Learning rates: numbers, or functions of the step. Workers send them with each push: a schedule costs nothing.

A rate is told apart by name: one for each group, factor and type of element that parameters have, and one per table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fleet_mpi.door.recipes import number
from fleet_mpi.errors import UsageError, nearest

if TYPE_CHECKING:
    import numpy as np

Lr = float | Callable[[int], float]


class LearningRate:
    """One learning rate that can be set at any time: the next push has it."""

    def __init__(self, value: Any, what: str) -> None:
        self.what = what
        self.all_rates: Rates | None = None   # those that it is sent with
        self.set(value)

    def set(self, value: Any) -> None:
        """A number, or a function of the step (0 for the first)."""
        self.value: Lr = value if callable(value) else number(value, f"{self.what}: lr")
        if self.all_rates is not None:
            self.all_rates.are_settled = False

    def at(self, step: int) -> float:
        """The number for a step."""
        if not callable(self.value):
            return self.value
        return number(self.value(step), f"{self.what}: lr({step})")


class Rates:
    """All learning rates of a worker, in the order in which they are sent."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[LearningRate, float]] = {}   # by name: a rate, and a factor
        self.are_settled = False   # whether what was written last holds for the next step too

    def add(self, name: str, rate: LearningRate, factor: float = 1.0) -> str:
        """Let a rate be sent under a name; returns the name."""
        self.known[name] = rate, factor   # a call that was refused may have left another one
        rate.all_rates = self
        return name

    def write(self, line: np.ndarray, names: Iterable[str], step: int) -> None:
        """Write the numbers of a step, by these names."""
        for place, name in enumerate(names):
            rate, factor = self.known[name]
            line[place] = rate.at(step) * factor
        self.are_settled = not any(callable(rate.value) for rate, _ in self.known.values())


def by_group(lr: Any, what: str) -> dict[str, LearningRate]:
    """{group: rate} of what a caller says: one for all, or {group: one}."""
    if isinstance(lr, Mapping):
        if not lr:
            raise UsageError(f"{what}: lr: expected a number, a function, or a rate for each group, got none")
        return {str(group): LearningRate(one, f"{what}, group {group!r}") for group, one in lr.items()}
    return {"": LearningRate(lr, what)}


def choice(rates: Mapping[str, Any], name: str, groups: Mapping[str, LearningRate], what: str) -> tuple[str, float]:
    """(group, factor) of a parameter: ``rates`` has a factor or the name of a group for some of them."""
    told = rates.get(name)
    if isinstance(told, str):
        if told not in groups:
            raise UsageError(f"{what}: rates: {name!r} is in group {told!r}, which lr does not have; "
                             f"{nearest(told, groups)}")
        return told, 1.0
    if "" not in groups:
        raise UsageError(f"{what}: lr is given by groups: say in rates which group {name!r} is in")
    return "", 1.0 if told is None else number(told, f"{what}: rates: {name!r}")
