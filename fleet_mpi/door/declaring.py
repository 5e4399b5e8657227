"""What workers want servers to keep, collected call by call and checked: it becomes a ``Declaration``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi import modes
from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.door import first_values, gate, keeping, recipes
from fleet_mpi.door.declaration import Declaration, Kept, refuse_equal_names, split_named
from fleet_mpi.door.parameters import WHAT, ParameterServer
from fleet_mpi.door.rates import LearningRate, Rates, by_group, choice
from fleet_mpi.door.tables import Table
from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.modes.options import whole
from fleet_mpi.parameter_server.tables.growing.description import refuse_recipe, with_keys
from fleet_mpi.parameter_server.tables.growing.keeping import EVERYTHING, Keeping
from fleet_mpi.placement.variables import checked_variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet_mpi.door.job import Job
    from fleet_mpi.parameter_server.recipes import Recipe

STEPS = ("clip_value", "clip_norm", "clip_global_norm", "l1", "l2")


class Declaring:
    """The parameters and tables of one job so far."""

    def __init__(self, job: Job) -> None:
        self.job, self.rates = job, Rates()
        self.server: ParameterServer | None = None
        self.tables: dict[str, Table] = {}
        self.declared = Declaration()

    @property
    def is_any(self) -> bool:
        """Whether anything was declared."""
        return bool(self.server or self.tables)

    def first_values(self) -> dict[str, np.ndarray]:
        """{name: array} of what worker 0 gives the servers."""
        params = {} if self.server is None else self.server.params
        return {**params, **{name: table.init for name, table in self.tables.items() if table.init is not None}}

    # ------------------------------------------------------------------ parameters

    def add_parameters(self, params: Any, rule: str, lr: Any, mode: str, options: dict[str, Any],
                       split: str, rates: Mapping[str, Any], each: Mapping[str, Mapping[str, Any]], in_place: bool,
                       common: dict[str, Any]) -> ParameterServer:
        """Check all that was said, then make what the caller gets."""
        if self.server is not None:
            raise UsageError(f"{WHAT}: this job has its parameters: declare all of them in one call; each={{name: "
                             f"{{...}}}} and rates={{name: ...}} say what differs between them")
        names = list(gate.named(params, WHAT))
        gate.refuse_unknown(rates, names, f"{WHAT}: rates")
        gate.refuse_unknown(each, names, f"{WHAT}: each")
        options, common = _apart(mode, options, recipes.rule_named(rule, WHAT), common)
        modes.named(mode, options)
        groups = by_group(lr, WHAT)
        kept = [self._parameter(name, one, _for_one(rule, common, each.get(name, {})), groups, rates)
                for name, one in gate.named(params, WHAT).items()]
        self._refuse_mode(mode)
        made = self.declared._replace(parameters=tuple(kept), mode=mode, options=_checked_options(mode, options),
                                      split=split_named(split))
        _check(made)
        self.server = ParameterServer(self.job, params, groups, in_place)
        self.declared = made
        return self.server

    def _parameter(self, name: str, one: Any, said: dict[str, Any], groups: dict[str, LearningRate],
                   rates: Mapping[str, Any]) -> Kept:
        what = f"{WHAT}: {name!r}"
        array = gate.floats(one, what)
        group, factor = choice(rates, name, groups, WHAT)
        called = " ".join(["lr", *([repr(group)] if group else []), *([f"x {factor!r}"] if factor != 1 else []),
                           *([] if array.dtype == np.float32 else [str(array.dtype)])])
        rate = self.rates.add(called, groups[group], factor)
        rule = recipes.rule_named(said["rule"], what)
        return Kept(name, array.shape, str(array.dtype), _recipe(name, rule, said, rate, what))

    def _refuse_mode(self, mode: str) -> None:
        if mode != "sync" and self.job.workers > 1 and not self.job.servers:
            raise UsageError(f"{WHAT}: mode {mode!r} needs servers, and this job has none: all its ranks are equal "
                             f"workers, which train in step (mode='sync'); join with servers=1 or more")
        for name, table in self.tables.items():
            _refuse_height(name, table.height, mode)

    # ------------------------------------------------------------------ tables

    def add_table(self, name: str, dim: Any, height: Any, rule: str, lr: Any, init: Any, dtype: Any,
                  said: dict[str, Any], rows_kept: dict[str, Any]) -> Table:
        """Check all that was said, then make what the caller gets; ``rows_kept`` has what ``keeping.UNSAID`` has."""
        what = f"table {name!r}"
        if not isinstance(name, str):
            raise UsageError(f"table: name: expected a text, got {name!r}")
        _refuse_height(name, height, self.declared.mode)
        height = ANY_HEIGHT if height is None else whole(f"{what}: height", height, 1)
        shape = height, whole(f"{what}: dim", dim, 1)
        dtype, rate = _float_type(dtype, what), LearningRate(lr, what)
        words = keeping.checked(rows_kept, what)
        if height != ANY_HEIGHT:
            keeping.refuse_said(rows_kept, what)
            words = EVERYTHING
        recipe = _recipe_of_rows(name, height, rule, said, words, what)
        rows = None if isinstance(init, (int, float, tuple, list)) else _rows(init, shape, dtype, f"{what}: init")
        drawn = first_values.checked(init, f"{what}: init") if rows is None else ()
        kept = Kept(name, shape, dtype, recipe, drawn, words)
        made = self.declared._replace(tables=(*self.declared.tables, kept))
        _check(made)
        self.declared = made
        self.rates.add(f"lr of {name}", rate)
        self.tables[name] = table = Table(self.job, name, shape[1], height, dtype, rate, words)
        table.init = rows
        return table


def _refuse_height(name: str, height: Any, mode: str) -> None:
    if height is not None and not modes.MODES[mode].servers_update:
        raise UsageError(f"table {name!r}: mode {mode!r} trains copies in each worker, whole ones of what has a "
                         f"height: declare it among the parameters, or leave out height: only rows in use are copied "
                         f"then")


def _check(made: Declaration) -> None:
    checked_variables([(one.name, (1, *one.shape[1:]) if one.grows else one.shape, one.dtype)
                       for one in (*made.parameters, *made.tables)])
    refuse_equal_names((*made.parameters, *made.tables))


def _rows(init: Any, shape: tuple[int, int], dtype: str, what: str) -> np.ndarray:
    """The array that a table begins with."""
    if shape[0] == ANY_HEIGHT:
        raise UsageError(f"{what}: a table without height cannot begin with an array: give height, or what servers "
                         f"draw rows from, such as (\"normal\", 0, 0.01)")
    return gate.like(init, shape, dtype, what)


def _for_one(rule: str, common: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of one parameter; settings of a rule are not for another one."""
    if own.get("rule", rule) != rule:
        common = {name: value for name, value in common.items() if name in STEPS}
    return {"rule": rule, **common, **own}


def _recipe(name: str, rule: Any, said: dict[str, Any], rate: str, what: str) -> Recipe:
    # What a rule has by the same name is its own: the decay of ftrl.
    before = {one: said[one] for one in STEPS if one in said and one not in rule.hypers}
    of_rule = {one: value for one, value in said.items() if one not in before and one != "rule"}
    return recipes.made(name, rule, recipes.settings_of(rule, of_rule, what), rate,
                        recipes.steps_of(before, what))


def _recipe_of_rows(name: str, height: int, rule: Any, said: dict[str, Any], words: Keeping, what: str) -> Recipe:
    if height != ANY_HEIGHT:
        return _recipe(name, recipes.rule_named(rule, what), said, f"lr of {name}", what)
    made = _recipe(name, recipes.row_rule_named(rule, what), said, f"lr of {name}", what)
    refuse_recipe(made, what)
    return with_keys(made, name, words)


def _float_type(dtype: Any, what: str) -> str:
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found not in gate.FLOATS:
        raise UsageError(f"{what}: dtype: expected float32 or float64, got {dtype!r}")
    return str(found)


def _apart(mode: str, options: dict[str, Any], rule: Any,
           said: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(options of the mode, settings of the rule) among keywords; a name that both have is the rule's."""
    halves = modes.named(mode)
    of_mode = {*halves.worker.options, *halves.server.options}
    of_rule = {*rule.hypers, *rule.setup, *STEPS}
    for name in [name for name in said if name not in of_rule]:
        if name not in of_mode:
            raise UsageError(f"{WHAT}: neither update rule {rule.name!r} nor mode {mode!r} has {name!r}; "
                             f"{nearest(name, of_rule | of_mode)}")
        options[name] = said.pop(name)
    return options, said


def _checked_options(mode: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options as what JSON can say; the server half's are checked now, the worker's when it is made."""
    modes.server_half(mode, options)
    return {name: value if isinstance(value, bool) else float(value) if isinstance(value, float) else int(value)
            for name, value in options.items()}
