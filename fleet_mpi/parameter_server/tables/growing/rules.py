"""The update rules of growing tables: those of ``update_rules`` that need no row which is not there, and row-wise ones.

A rule runs on rows of a slab, by slot. One whose untouched rows move runs on every stored row: a row that is not
stored has zero states and does not move, so a table of fixed height has the same bits. Knows no ids.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.kernels.reference import row_slab
from fleet_mpi.update_rules import RULES, Hypers, State

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np


@dataclasses.dataclass(frozen=True)
class GrowingRule:
    """An update rule of rows.

    ``kernel`` is called with slab, slots, gradients, then ``arguments``: names of hyper-parameters, of states that are
    one number for the table, "learning_rate", or numbers. Of the other states a row has as many elements as values,
    or one where ``one_per_row`` names them. ``decays`` is the hyper-parameter that would move rows which do not exist
    yet. ``moves_untouched``: rows without a gradient move too, unless ``lazy_mode`` is a setting and true.
    """

    name: str
    kernel: Any
    arguments: tuple[str | float, ...]
    states: tuple[State, ...] = ()
    hypers: Hypers = dataclasses.field(default_factory=dict)
    setup: Hypers = dataclasses.field(default_factory=dict)
    one_per_row: tuple[str, ...] = ()
    decays: str | None = None
    moves_untouched: bool = False

    @property
    def row_states(self) -> tuple[State, ...]:
        """Those that a row has."""
        return tuple(state for state in self.states if state.like_param)

    @property
    def table_states(self) -> tuple[State, ...]:
        """Those that are one number for the table."""
        return tuple(state for state in self.states if not state.like_param)

    def complete(self, given: Hypers) -> dict[str, Any]:
        """All hyper-parameters, defaults filled in, each of its default's type; UsageError for what cannot be."""
        known = {**self.hypers, **self.setup}
        for name in given:
            if name not in known:
                raise UsageError(f"update rule {self.name!r} has no hyper-parameter {name!r}; {nearest(name, known)}")
        found = {name: type(default)(given.get(name, default)) for name, default in known.items()}
        if self.decays and found[self.decays] and not found.get("lazy_mode"):
            raise UsageError(f"update rule {self.name!r} with {self.decays}={found[self.decays]:g} would decay rows "
                             f"that a growing table does not have yet: expected 0"
                             f"{', or lazy_mode=True' if 'lazy_mode' in known else ''}")
        return found

    def initial(self, hypers: Hypers) -> dict[str, float]:
        """The first value of each state, by name."""
        return {state.name: hypers[state.initial] if isinstance(state.initial, str) else state.initial
                for state in self.states}

    def run(self, slab: np.ndarray, slots: np.ndarray, grads: np.ndarray, given: Mapping[str, Any]) -> None:
        """Update rows of a slab; ``given`` has the learning rate, hyper-parameters and states of the table."""
        self.kernel(slab, slots, grads, *(given[name] if isinstance(name, str) else name for name in self.arguments))


def growing_rule(name: str) -> GrowingRule:
    """The rule of this name; UsageError with the list of those that go."""
    if name not in GROWING_RULES:
        why = "moves rows that do not exist yet, or needs norms of the whole table" if name in RULES else "is unknown"
        raise UsageError(f"a growing table cannot be updated by {name!r}, which {why}; "
                         f"expected one of {', '.join(GROWING_RULES)}")
    return GROWING_RULES[name]


def _derived(name: str, kernel: Any, *arguments: str | float, **more: Any) -> GrowingRule:
    rule = RULES[name]
    return GrowingRule(name, kernel, arguments, rule.states, rule.hypers, rule.setup, **more)


_ADAM = ("beta1_pow_acc", "beta2_pow_acc", "learning_rate", "beta1", "beta2", "epsilon")

GROWING_RULES = {rule.name: rule for rule in (
    _derived("sgd", row_slab.sgd, "learning_rate"),
    _derived("momentum", row_slab.momentum, "learning_rate", "mu", "use_nesterov", "rescale_grad",
             decays="regularization_coeff", moves_untouched=True),
    _derived("adagrad", row_slab.adagrad, "learning_rate", "epsilon"),
    _derived("adam", row_slab.adam, *_ADAM, 0.0, "lazy_mode", moves_untouched=True),
    _derived("adamw", row_slab.adam, *_ADAM, "coeff", "lazy_mode", decays="coeff", moves_untouched=True),
    _derived("ftrl", row_slab.ftrl, "learning_rate", "l1", "l2", "lr_power"),
    GrowingRule("adagrad_rowwise", row_slab.adagrad_rowwise, ("learning_rate", "epsilon"),
                (State("moment", "Moment", "initial_accumulator_value"),), {"epsilon": 1e-6},
                {"initial_accumulator_value": 0.0}, one_per_row=("moment",)),
)}
