"""How parameters and tables are updated, from what a caller says: rules, their settings, clipping and decay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fleet_mpi import modes
from fleet_mpi.errors import NotBuilt, UsageError, nearest
from fleet_mpi.parameter_server.recipes import Bound, BoundNorm, Decay, Recipe
from fleet_mpi.parameter_server.tables.growing.rules import GROWING_RULES, growing_rule
from fleet_mpi.update_rules import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet_mpi.parameter_server.recipes import Step
    from fleet_mpi.parameter_server.tables.growing.rules import GrowingRule
    from fleet_mpi.update_rules import Rule

    AnyRule = Rule | GrowingRule

GLOBAL = "all"   # the group of variables whose common norm is bounded
# How steps travel: the kind by name, then its fields.
_STEPS: dict[str, type] = {kind.__name__: kind for kind in (Decay, Bound, BoundNorm)}


def rule_named(name: Any, what: str) -> Rule:
    """The update rule of this name."""
    if not isinstance(name, str) or name not in RULES:
        raise UsageError(f"{what}: no update rule is called {name!r}; {nearest(str(name), RULES)}")
    if name == "dgc_momentum":
        raise NotBuilt(f"{what}: deep gradient compression is for workers without servers; use momentum")
    return RULES[name]


def row_rule_named(name: Any, what: str) -> GrowingRule:
    """The update rule of this name, for a table without height."""
    try:
        is_known = isinstance(name, str) and name in GROWING_RULES
        return growing_rule(name if is_known else rule_named(name, what).name)
    except UsageError as error:
        raise UsageError(str(error) if str(error).startswith(what) else f"{what}: {error}") from None


def settings_of(rule: AnyRule, given: Mapping[str, Any], what: str) -> tuple[tuple[str, Any], ...]:
    """The rule's settings as a recipe has them; each is of its default's type, and finite."""
    known, made = {**rule.hypers, **rule.setup}, {}
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"{what}: update rule {rule.name!r} has no hyper-parameter {name!r}; "
                             + (nearest(name, known) if known else "it has none"))
        made[name] = _like_default(known[name], value, f"{what}: {name}")
    return tuple(sorted(made.items()))


def _like_default(default: Any, value: Any, what: str) -> Any:
    if isinstance(default, bool):
        return modes.options.yes_or_no(what, value)
    if isinstance(default, int):
        return modes.options.whole(what, value, 0)
    return number(value, what, -math.inf)


def number(value: Any, what: str, least: float = 0.0) -> float:
    """A finite number from ``least`` up."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{what}: expected a number, got {value!r}") from None
    if not math.isfinite(found) or found < least:
        raise UsageError(f"{what}: expected a finite number" + (f" from {least:g} up" if math.isfinite(least) else "")
                         + f", got {value!r}")
    return found


def steps_of(said: Mapping[str, Any], what: str) -> tuple[Step | BoundNorm, ...]:
    """The steps before the rule, of what was said of them: clipping, then decay."""
    steps: list[Step | BoundNorm] = []
    if "clip_value" in said:
        steps.append(_bound(said["clip_value"], f"{what}: clip_value"))
    if "clip_norm" in said:
        steps.append(BoundNorm(_positive(said["clip_norm"], f"{what}: clip_norm")))
    if "clip_global_norm" in said:
        steps.append(BoundNorm(_positive(said["clip_global_norm"], f"{what}: clip_global_norm"), GLOBAL))
    for name, of_sign in (("l1", True), ("l2", False)):
        if coefficient := number(said.get(name, 0.0), f"{what}: {name}"):
            steps.append(Decay(coefficient, of_sign))
    return tuple(steps)


def _bound(clip: Any, what: str) -> Bound:
    ends = clip if isinstance(clip, (tuple, list)) else (-number(clip, what), clip)
    if len(ends) != 2:
        raise UsageError(f"{what}: expected a number, or (low, high), got {clip!r}")
    low, high = (number(one, what, -math.inf) for one in ends)
    if low > high:
        raise UsageError(f"{what}: expected a number, or (low, high), got {clip!r}")
    return Bound(low, high)


def _positive(value: Any, what: str) -> float:
    found = number(value, what)
    if not found:
        raise UsageError(f"{what}: expected a number above 0, got {value!r}")
    return found


def made(variable: str, rule: AnyRule, hypers: tuple[tuple[str, Any], ...], rate: str,
         steps: tuple[Step | BoundNorm, ...]) -> Recipe:
    """The recipe of a variable; its states are called as the original calls them."""
    return Recipe(rule.name, hypers, rate, steps,
                  tuple((state.name, f"{variable}_{state.name}_0") for state in rule.states))


def to_plain(recipe: Recipe) -> list[Any]:
    """A recipe as what JSON can say."""
    return [recipe.rule, [list(pair) for pair in recipe.hypers], recipe.rate,
            [[type(step).__name__, *step] for step in recipe.steps], [list(pair) for pair in recipe.states]]


def from_plain(told: list[Any]) -> Recipe:
    """And back."""
    rule, hypers, rate, steps, states = told
    return Recipe(rule, tuple((name, value) for name, value in hypers), rate,
                  tuple(_STEPS[kind](*fields) for kind, *fields in steps),
                  tuple((state, name) for state, name in states))
