"""What the clients and servers of a job must agree on: plain data; and its variables by name (``Inventory``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.parameter_server.tables.dense import DenseDescription

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleet_mpi.parameter_server.recipes import Recipe
    from fleet_mpi.parameter_server.tables.base import Described, DescribedByRows, StateLook, Variable
    from fleet_mpi.placement.placing import Placement
    from fleet_mpi.placement.shard import Shard

LoadedFrom: TypeAlias = list[Any]   # [folder, files] that values come from: a list, as it travels


class Description(NamedTuple):
    """The tables of a job, and the learning rates that their updates take."""

    placement: Placement                             # of the dense variables
    recipes: Mapping[str, Recipe]                    # {variable: Recipe}
    rates: tuple[str, ...] = ()                      # the learning rates that workers set, by name
    row_tables: tuple[DescribedByRows, ...] = ()     # those that are asked for rows
    rate_dtypes: Mapping[str, Any] = {}              # {name: dtype} of the rates that are not float32
    keeps_states: bool = True    # False: optimizers and rates are the workers' (geo), servers only have parameters

    @property
    def dense(self) -> DenseDescription:
        """The table of all dense variables."""
        return DenseDescription(self.placement, self.recipes)

    @property
    def tables(self) -> tuple[Described, ...]:
        """All tables: the dense one, then those that are asked for rows."""
        return self.dense, *self.row_tables


class StateKey(NamedTuple):
    """The name of a value that servers keep: ``kind`` is "param", "state", "rate" or "counter".

    ``variable`` is the parameter (or the name of a rate or counter), ``state`` the update rule's name for the state.
    """

    kind: str
    variable: str
    state: str = ""


def param(variable: str) -> StateKey:
    """The key of a parameter."""
    return StateKey("param", variable)


def rate(name: str) -> StateKey:
    """The key of a learning rate, [1]; all servers have the same."""
    return StateKey("rate", name)


class Inventory:
    """All variables of a Description, dense ones and tables of rows alike."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self._tables = {name: table for table in description.tables for name in table.variables}
        self._variables = {name: one for table in description.tables for name, one in table.variables.items()}

    def by_program_name(self, counters: Iterable[str] = ()) -> dict[str, StateKey]:
        """{variable of the program: its key}. A rate is the servers' where they compute it, else the workers'."""
        keeps = self.description.keeps_states
        found = {name: StateKey("counter", name) for name in (counters if keeps else ())}
        for variable in self._variables:
            recipe = self.recipe(variable)
            if keeps and recipe.rate not in self.description.rates:
                found[recipe.rate] = rate(recipe.rate)
            found |= {name: StateKey("state", variable, state) for state, name in recipe.states}
            found[variable] = param(variable)
        return found

    def variable(self, name: str) -> Variable:
        """What is known of a variable."""
        if name not in self._variables:
            raise UsageError(f"the servers keep no variable {name!r}; {nearest(name, self._variables)}")
        return self._variables[name]

    def recipe(self, name: str) -> Recipe:
        """How a variable is updated."""
        return self._tables[self.variable(name).name].recipe_of(name)

    def shards(self, name: str) -> Sequence[Shard]:
        """The shards of a variable, in order: together they are the whole of it."""
        return self._tables[self.variable(name).name].shards_of(name)

    def grows(self, key: StateKey) -> bool:
        """Whether it belongs to a table that has a row for any id."""
        return key.kind in ("param", "state") and self.variable(key.variable).shape[:1] == (ANY_HEIGHT,)

    def state(self, variable: str, name: str) -> StateLook:
        """How a state looks, by the rule's name of it."""
        known = self.variable(variable)
        states = self._tables[variable].states_of(known)
        if name not in states:
            raise UsageError(f"{variable} is updated by {self.recipe(variable).rule}, which has no state {name!r}; "
                             f"{nearest(name, states)}")
        return states[name]

    def is_spread(self, key: StateKey) -> bool:
        """Whether each server has its part of the value; else every place has the same number."""
        return key.kind == "param" or key.kind == "state" and self.state(key.variable, key.state).is_spread

    def shape_and_dtype(self, key: StateKey) -> tuple[tuple[int, ...], np.dtype]:
        """Of a whole parameter or state; ANY_HEIGHT first where only servers know how many rows there are."""
        if key.kind == "state":
            return self.state(key.variable, key.state)[:2]
        variable = self.variable(key.variable)
        return tuple(variable.shape), np.dtype(variable.dtype)
