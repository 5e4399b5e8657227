"""How a variable is updated from its gradient: plain data that a transpiled program comes down to.

A recipe is some steps on the averaged gradient (clipping, weight decay), then a rule of ``update_rules`` with its
settings, at a learning rate that is known by name. Steps act in place and element by element, with the roundings of
the ops they stand for, so that any cut of a variable gives the bits of the whole. Only norms need more than a cut
has: those steps, and rules with ``norms``, name the sums of squares they want.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fleet_mpi.update_rules import RULES


class Decay(NamedTuple):
    """grad += coefficient * param (L2), or * sign(param) (L1)."""

    coefficient: float
    of_sign: bool = False

    def apply(self, grad: np.ndarray, param: np.ndarray, scratch: np.ndarray) -> None:
        """In place; ``scratch`` is as long as the gradient."""
        source = np.sign(param, out=scratch) if self.of_sign else param
        np.multiply(source, self.coefficient, out=scratch)
        np.add(grad, scratch, out=grad)


class Bound(NamedTuple):
    """Every element into [low, high]."""

    low: float
    high: float

    def apply(self, grad: np.ndarray, param: np.ndarray, scratch: np.ndarray) -> None:
        """In place."""
        np.clip(grad, self.low, self.high, out=grad)


class BoundNorm(NamedTuple):
    """Scale down to a norm: of this variable alone, or, with a group's name, of all variables of the group."""

    norm: float
    group: str = ""

    def factor(self, squares: np.ndarray) -> np.ndarray:
        """The number to multiply with, from the sum of squares ([1] float64)."""
        return self.norm / np.maximum(np.sqrt(squares), self.norm)


Step = Decay | Bound   # what acts element by element


class Recipe(NamedTuple):
    """The update of one variable: steps in order, the rule's name and settings, the names of rate and states."""

    rule: str
    hypers: tuple[tuple[str, Any], ...] = ()    # (name, value) pairs, sorted
    rate: str = "learning_rate"
    steps: tuple[Step | BoundNorm, ...] = ()
    states: tuple[tuple[str, str], ...] = ()    # (the rule's state, the program's variable) pairs

    @property
    def needs_norms(self) -> bool:
        """Whether a part of the variable cannot be updated on its own."""
        return self.rule_has_norms or any(isinstance(step, BoundNorm) for step in self.steps)

    @property
    def rule_has_norms(self) -> bool:
        """Whether the rule itself takes norms; those of growing tables that no other variable has take none."""
        return self.rule in RULES and RULES[self.rule].norms is not None

    def key(self) -> tuple[Any, ...]:
        """What two variables must have in common to be updated in one go."""
        return (*self[:-1], tuple(state for state, _ in self.states))


def recipe(rule: str, rate: str = "learning_rate", steps: Iterable[Step | BoundNorm] = (),
           states: Iterable[tuple[str, str]] = (), **hypers: Any) -> Recipe:
    """A recipe with the rule's settings as keywords."""
    return Recipe(rule, tuple(sorted(hypers.items())), rate, tuple(steps), tuple(states))
