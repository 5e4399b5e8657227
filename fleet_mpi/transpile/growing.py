"""Tables that grow: from a program's lookups and updates to the plain data that servers know such a table by.

What is not in the program's ops follows from its startup program: what a state begins with. Rows are drawn by the same
key as in one process (``program.ops.sparse_table``), so they begin with the same bits on servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.kernels.reference import random
from fleet_mpi.parameter_server.recipes import Recipe
from fleet_mpi.parameter_server.tables.growing.admission import MOST_COUNTED
from fleet_mpi.parameter_server.tables.growing.description import refuse_recipe, with_keys
from fleet_mpi.parameter_server.tables.growing.keeping import Keeping
from fleet_mpi.parameter_server.tables.growing.rules import growing_rule
from fleet_mpi.program.engine.randomness import program_seed
from fleet_mpi.program.graph.registry import find
from fleet_mpi.transpile.lookups import GROWING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from fleet_mpi.program.graph.operator import Operator
    from fleet_mpi.program.graph.program import Program

# What an op's initializer is called among the draws of growing tables.
_DRAWS = {"fill_constant": "constant", "uniform_random": "uniform", "gaussian_random": "normal",
          "truncated_gaussian_random": "truncated_normal"}


class TableForAnyId(NamedTuple):
    """A table of a program that has a row for any id: what ``tables.described("growing", ...)`` takes but the recipe.
    """

    name: str
    width: int
    dtype: str
    init: tuple[Any, ...]
    key: int
    keeping: Keeping


def growing_tables(program: Program, updated: Iterable[str]) -> dict[str, TableForAnyId]:
    """Those of a program that are updated, by name in the order of their first lookups."""
    found: dict[str, TableForAnyId] = {}
    updated = set(updated)
    for op in (op for block in program.blocks for op in block.ops if op.type == GROWING):
        name, = op.input("W")
        if name in updated:
            one = _table(program, op)
            if found.setdefault(name, one) != one:
                raise UsageError(f"{op}: the lookups of table {name!r} say different things of it: {one} and "
                                 f"{found[name]}; give all of them the same entry and initializer")
    return found


def growing_recipes(tables: Mapping[str, TableForAnyId], recipes: Mapping[str, Recipe],
                    startup: Program) -> dict[str, Recipe]:
    """The recipes of these tables, complete; refused is what rows that are not stored would have to take part in."""
    return {name: _recipe(name, recipes[name], startup, table.keeping) for name, table in tables.items()}


def _table(program: Program, op: Operator) -> TableForAnyId:
    name, = op.input("W")
    var, given = program.global_block().var(name), _attrs(op)
    kind, first, second = _DRAWS[given["init_type"]], float(given["init_from"]), float(given["init_to"])
    init = (kind, first) if kind == "constant" else (kind, first, second)
    return TableForAnyId(name, int(var.shape[1]), np.dtype(var._dtype).name, () if init == ("constant", 0.0) else init,
                        random.key_of(given["init_seed"] or program_seed(program), name),
                        Keeping(_admit(given["entry"], op), score="unseen"))


def _attrs(op):
    return {**find(GROWING).attrs, **op.attrs}


def _admit(entry, op):
    """The words of an admission that an entry's text stands for."""
    kind, _, number = entry.partition(":")
    if kind == "probability_entry" and float(number) < 1:
        return "probability", float(number)
    if kind == "count_filter_entry" and int(number) > 1:
        if int(number) > MOST_COUNTED:
            raise UsageError(f"{op}: CountFilterEntry: servers count up to {MOST_COUNTED}, got {number}")
        return "seen", int(number)
    return ()


def _recipe(name: str, recipe: Recipe, startup: Program, keeping: Keeping) -> Recipe:
    what = f"table {name!r} has a row for any id"
    try:
        rule = growing_rule(recipe.rule)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None
    hypers = dict(recipe.hypers)
    for state, held in recipe.states:
        begins = next(one.initial for one in rule.states if one.name == state)
        if isinstance(begins, str) and begins in rule.setup:
            hypers[begins] = _first_value(held, startup, rule.setup[begins])
        elif isinstance(begins, str):
            _refuse_another_beginning(what, begins, hypers.get(begins, rule.hypers[begins]),
                                      _first_value(held, startup, None))
    complete = recipe._replace(hypers=tuple(sorted(hypers.items())))
    refuse_recipe(complete, what)
    return with_keys(complete, name, keeping)


def _refuse_another_beginning(what, setting, value, first):
    """Rows on servers begin with their rule's setting; with one that is a variable a program may say otherwise."""
    if first is not None and np.float32(first) != np.float32(value):
        raise NotBuilt(f"{what}: {setting} is a variable of value {value:g}, and the state that begins with it begins "
                       f"with {first:g}; give {setting} as a number")


def _first_value(held, startup, default):
    """What a startup program fills a state with."""
    made = [op for op in startup.global_block().ops if held in op.output_arg_names and op.type == "fill_constant"]
    return float(made[-1].attrs["value"]) if made else default
