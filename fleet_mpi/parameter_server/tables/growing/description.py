"""What all ranks of a job know of a table that grows, and the way to its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.errors import UsageError
from fleet_mpi.kernels.reference import partitions, row_draws
from fleet_mpi.parameter_server.recipes import BoundNorm, Decay, Recipe
from fleet_mpi.parameter_server.tables.base import KEYS, SCORES, UPDATES, StateLook, looks_of
from fleet_mpi.parameter_server.tables.growing.copies import RowCopies
from fleet_mpi.parameter_server.tables.growing.keeping import EVERYTHING, Keeping
from fleet_mpi.parameter_server.tables.growing.rules import growing_rule
from fleet_mpi.parameter_server.tables.growing.table import GrowingTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet_mpi.parameter_server.tables.base import Variable

# What rows may begin with, by name: the draws' numbers follow. All but the constant are drawn by counter.
DRAWS = {"uniform": row_draws.uniform, "normal": row_draws.normal, "truncated_normal": row_draws.truncated_normal}
MOST_SERVERS = 1 << partitions.BITS


class GrowingDescription(NamedTuple):
    """Plain data. ``init`` is a draw and its numbers, or ("constant", number), or empty: zeros; ``key`` of the draw.

    ``is_copied``: workers run the recipe on copies of their own, and servers only add what these moved by.
    """

    name: str
    width: int
    dtype: str
    recipe: Recipe
    init: tuple[Any, ...] = ()
    key: int = 0
    keeping: Keeping = EVERYTHING
    is_copied: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows it has is known to its servers only."""
        return ANY_HEIGHT, self.width

    @property
    def variables(self) -> dict[str, GrowingDescription]:
        """The table itself."""
        return {self.name: self}

    @property
    def servers_recipe(self) -> Recipe:
        """How servers update rows; plain descent stands for adding (see ``GrowingTable``)."""
        if not self.is_copied:
            return self.recipe
        beside = tuple(pair for pair in self.recipe.states if pair[0] in (KEYS, *self.keeping.columns))
        return Recipe("sgd", rate=self.recipe.rate, states=beside)

    def recipe_of(self, variable: str) -> Recipe:
        """The servers'."""
        return self.servers_recipe

    def states_of(self, variable: Variable) -> dict[str, StateLook]:
        """The rule's, and beside them the ids."""
        rule = growing_rule(self.servers_recipe.rule)
        looks = looks_of(rule.states, self.shape, self.dtype)
        looks |= {name: looks[name]._replace(shape=(ANY_HEIGHT, 1)) for name in rule.one_per_row}
        of_keeper = {SCORES: StateLook((ANY_HEIGHT,), np.dtype(np.int32), True),
                     UPDATES: StateLook((1,), np.dtype(np.int64), False)}
        return {KEYS: StateLook((ANY_HEIGHT,), np.dtype(np.int64), True), **looks,
                **{name: of_keeper[name] for name in self.keeping.columns}}

    def shards_of(self, variable: str) -> tuple[()]:
        """None: rows are placed by their ids."""
        return ()

    def table(self, server: int, rates: Mapping[str, np.ndarray]) -> GrowingTable:
        """What a server keeps; ``rates`` is {name: [1] array}."""
        return GrowingTable(self, server, rates)

    def copies(self, rates: Mapping[str, np.ndarray], share: float) -> RowCopies:
        """A worker's own copies of rows."""
        return RowCopies(self, rates, share)

    def route(self, servers: int) -> GrowingRoute:
        """Which server has which row."""
        return GrowingRoute(servers)

    @property
    def first_values(self) -> Callable[[np.ndarray, np.ndarray], None]:
        """What fills ``out`` ([ids, width]) with the rows that some ids begin with."""
        return first_values(self.init, self.key)


class GrowingRoute:
    """Where rows are, for a job of so many servers: each has the ids of some partitions, which travel as they are."""

    def __init__(self, servers: int) -> None:
        if servers > MOST_SERVERS:
            raise UsageError(f"a table that grows is spread over at most {MOST_SERVERS} servers, this job has "
                             f"{servers}")
        self.servers = servers

    def check(self, ids: np.ndarray) -> None:
        """Every id is good."""

    def split(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """(ids ordered by server, the positions they were at, or None for as they were; how many per server)."""
        if self.servers == 1:
            return ids, None, np.array([len(ids)])
        local, order, counts = np.empty_like(ids), np.empty_like(ids), np.empty(self.servers, np.int64)
        partitions.split_by_partition(ids, counts, local, order)
        return local, order, counts


def rows_of_server(ids: np.ndarray, server: int, servers: int) -> np.ndarray:
    """The positions of those ids whose rows one of so many servers has."""
    _, order, counts = GrowingRoute(servers).split(np.ascontiguousarray(ids))
    if order is None:
        return np.arange(len(ids))
    end = int(counts[:server + 1].sum())
    return order[end - int(counts[server]):end]


def first_values(init: tuple[Any, ...], key: int) -> Callable[[np.ndarray, np.ndarray], None]:
    """What fills ``out`` ([ids, width]) with the rows of some ids: the same for any cut of a table, of any kind."""
    kind, *numbers = init or ("constant", 0.0)
    if kind == "constant":
        return lambda ids, out: row_draws.constant(ids, out, *numbers)
    return lambda ids, out: DRAWS[kind](ids, out, key, *numbers)


def with_keys(recipe: Recipe, name: str, keeping: Keeping = EVERYTHING) -> Recipe:
    """The recipe of a table that grows: its ids, and what is kept of its rows, are in files beside its states."""
    beside = tuple((column, f"{name}{column}") for column in (KEYS, *keeping.columns))
    return recipe._replace(states=(*beside, *recipe.states))


def refuse_recipe(recipe: Recipe, what: str) -> None:
    """UsageError for an update that rows which are not stored would have to take part in; ``what`` begins it."""
    try:
        growing_rule(recipe.rule).complete(dict(recipe.hypers))
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None
    if any(isinstance(step, Decay) for step in recipe.steps):
        raise UsageError(f"{what}: l1 and l2 concern every row, also those that no server stores yet: a table without "
                         f"height has no decay; give height, or decay in the model")
    if any(isinstance(step, BoundNorm) for step in recipe.steps):
        raise UsageError(f"{what}: clip_norm takes the norm of a whole table: a table without height is clipped by "
                         f"clip_value; or give height")
