"""A table of fixed height that travels by rows: its description, what one server keeps of it, and the way to a row.

A server keeps its shards of a table one after the other as one array, with optimizer states beside it; row numbers
within that array, *local* ids, are what travels. Row gradients are summed by id in the order of the workers and
divided by the number of all that contributed, as dense ones are, and updated by the same recipe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from fleet_mpi import arrays, update_rules
from fleet_mpi.arrays import Rows, aligned
from fleet_mpi.errors import PeerLost, UsageError
from fleet_mpi.kernels.reference import rows as row_kernels
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.recipes import BoundNorm, Decay, Recipe, Step
from fleet_mpi.parameter_server.tables.base import looks_of

if TYPE_CHECKING:
    from fleet_mpi.parameter_server.tables.base import Node, StateLook, Variable
    from fleet_mpi.placement.shard import Shard


class RowOutOfRange(UsageError, IndexError):
    """An id that is no row of its table."""


def refuse_outside(name: str, ids: np.ndarray, height: int) -> None:
    """RowOutOfRange for the first of some ids (int64 [n]) that is no row of a table so high."""
    position = row_kernels.first_outside(ids, height)
    if position != row_kernels.ALL_INSIDE:
        raise RowOutOfRange(f"table {name!r}: id {ids[position]} at position {position} of {len(ids)} is no "
                            f"row of it: expected 0 <= id < {height}. Make the table as high as the largest "
                            f"id plus one, or mend the ids.")


class RowTableDescription(NamedTuple):
    """What workers and servers must know of a table: plain data. ``shards`` are all of its shards, cut by rows."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    shards: tuple[Shard, ...]
    recipe: Recipe

    @property
    def variables(self) -> dict[str, RowTableDescription]:
        """The table itself."""
        return {self.name: self}

    @property
    def height(self) -> int:
        """How many rows there are."""
        return self.shape[0]

    @property
    def width(self) -> int:
        """How many elements a row has."""
        return int(np.prod(self.shape[1:], dtype=np.int64))

    def recipe_of(self, variable: str) -> Recipe:
        """The table's."""
        return self.recipe

    def states_of(self, variable: Variable) -> dict[str, StateLook]:
        """The rule's."""
        return looks_of(update_rules.RULES[self.recipe.rule].states, self.shape, self.dtype)

    def shards_of(self, variable: str) -> tuple[Shard, ...]:
        """The table's."""
        return self.shards

    def of_server(self, server: int) -> list[tuple[Shard, int]]:
        """(shard, its first local row) of every shard that a server keeps, in order of rows."""
        found, begin = [], 0
        for shard in sorted(self.shards, key=lambda one: one.row_begin):
            if shard.server == server:
                found.append((shard, begin))
                begin += shard.rows
        return found

    def table(self, server: int, rates: Mapping[str, np.ndarray]) -> RowTable:
        """What a server keeps; ``rates`` is {name: [1] array}."""
        return RowTable(self, server, rates)

    def copies(self, rates: Mapping[str, np.ndarray], share: float) -> NoReturn:
        """None: a table with a height is copied whole."""
        raise UsageError(f"geo trains whole copies: place {self.name} as dense variables, not by rows")

    def route(self, servers: int) -> RowRoute:
        """Which server has which row."""
        return RowRoute(self, servers)


class RowRoute:
    """Where the rows of one table are, for a job of so many servers."""

    def __init__(self, description: RowTableDescription, servers: int) -> None:
        self.name, self.height, self.servers = description.name, description.height, servers
        placed = sorted((shard.row_begin, server, begin) for server in range(servers)
                        for shard, begin in description.of_server(server) if shard.rows)
        self.row_begins = np.array([row for row, _, _ in placed], np.int64)
        self.server_of = np.array([server for _, server, _ in placed], np.int64)
        self.shifts = np.array([begin - row for row, _, begin in placed], np.int64)

    def check(self, ids: np.ndarray) -> None:
        """Refuse ids that are no rows of the table."""
        refuse_outside(self.name, ids, self.height)

    def split(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """(local ids ordered by server, the positions they were at, or None for as they were; how many per server)."""
        if len(self.row_begins) == 1:
            return ids, None, np.bincount(self.server_of, minlength=self.servers) * len(ids)
        local, order, counts = np.empty_like(ids), np.empty_like(ids), np.empty(self.servers, np.int64)
        row_kernels.split_ids(ids, self.row_begins, self.shifts, self.server_of, counts, local, order)
        return local, order, counts


class RowTable:
    """One server's part of a table."""

    columns = None

    def __init__(self, description: RowTableDescription, server: int, rates: Mapping[str, np.ndarray]) -> None:
        self.description, self.rates, self.recipe = description, rates, description.recipe
        self.name, self.width, self.dtype = description.name, description.width, np.dtype(description.dtype)
        self.placed = description.of_server(server)
        self.height = sum(shard.rows for shard, _ in self.placed)
        self.rule, self.needs_norms = update_rules.RULES[self.recipe.rule], self.recipe.needs_norms
        self.params = arrays.empty((self.height, self.width), self.dtype)
        self.params[...] = 0
        known = {**self.rule.hypers, **self.rule.setup}
        given = {name: value for name, value in self.recipe.hypers if name in known}
        self.states = dict(zip((state.name for state in self.rule.states),
                               self.rule.new_states(self.params, **given), strict=True))
        self.hypers = self.rule.complete({name: value for name, value in given.items() if name in self.rule.hypers})
        self._begins = {shard.block: (shard, begin) for shard, begin in self.placed}
        self.mean = RowMean(self.height)

    # ------------------------------------------------------------------ values by name, as in DenseTable

    def shards(self) -> tuple[Shard, ...]:
        """The shards kept here."""
        return tuple(shard for shard, _ in self.placed)

    def param(self, variable: str, block: int) -> np.ndarray:
        """The values of one shard: a view."""
        return self._part(self.params, block)

    def state(self, variable: str, block: int, name: str) -> np.ndarray:
        """A state of one shard: a view; for one number per table a copy in [1]."""
        return self._part(self.states[name], block) if self._is_like_param(name) else self.states[name].copy()

    def set_state(self, variable: str, block: int, name: str, values: np.ndarray) -> None:
        """Take over a state of one shard."""
        (self._part(self.states[name], block) if self._is_like_param(name) else self.states[name])[...] = values

    def _part(self, array: np.ndarray, block: int) -> np.ndarray:
        shard, begin = self._begins[block]
        return array[begin:begin + shard.rows].reshape(shard.shape)

    def _is_like_param(self, name: str) -> bool:
        return next(state.like_param for state in self.rule.states if state.name == name)

    # ------------------------------------------------------------------ what travels

    def push_bytes(self, count: int) -> int:
        """Of so many rows with their ids."""
        self._refuse_count(count)
        return messages.rows_bytes(count, self.width, self.dtype)

    def read(self, body: np.ndarray, count: int) -> Rows:
        """The Rows, by local ids, that so many bytes hold: views of them."""
        ids = body[:8 * count].view(np.int64)
        self._refuse_outside(row_kernels.first_outside(ids, self.height), ids)
        return Rows(ids, self._rows_of(body[aligned(8 * count):], count), self.height)

    def answer_bytes(self, count: int) -> int:
        """Of so many rows."""
        self._refuse_count(count)
        return aligned(count * self.width * self.dtype.itemsize)

    def answer(self, ids: np.ndarray, out: np.ndarray) -> None:
        """Copy the rows of local ids."""
        rows = self._rows_of(out, len(ids))
        self._refuse_outside(row_kernels.gather_rows(self.params, ids, rows, row_kernels.NO_PADDING), ids)

    def _rows_of(self, line: np.ndarray, count: int) -> np.ndarray:
        """The front of a line of bytes as so many rows."""
        return line[:count * self.width * self.dtype.itemsize].view(self.dtype).reshape(count, self.width)

    def _refuse_count(self, count: int) -> None:
        if not 0 <= count <= self.height:
            raise PeerLost(f"table {self.name!r}: a push of {count} rows to a server that keeps {self.height}: do both "
                           f"run the same program?")

    def _refuse_outside(self, position: int, ids: np.ndarray) -> None:
        if position != row_kernels.ALL_INSIDE:
            raise PeerLost(f"table {self.name!r}: asked for local row {ids[position]}, this server keeps "
                           f"{self.height}: do both run the same program?")

    # ------------------------------------------------------------------ updating

    def refuse(self, contributions: Sequence[Rows]) -> None:
        """Nothing: there is room for every row."""

    def update(self, contributions: Sequence[Rows]) -> None:
        """By the mean over all contributors, with the row or without."""
        gradient = RowGradient(self, self.mean(contributions))
        for step in self.recipe.steps:
            assert not isinstance(step, BoundNorm)
            gradient.apply(step)
        gradient.finish(())

    def gradients(self, contributions: Sequence[Rows]) -> list[RowGradient]:
        """One: the mean as ``update`` has it."""
        return [RowGradient(self, self.mean(contributions))]

    def nodes_of(self, array: np.ndarray) -> list[Node]:
        """The nodes of the tree of squares of an array that lies as the table does."""
        table = array.reshape(self.height, self.width)
        return [node for shard, begin in self.placed
                for node in update_rules.square_nodes(table[begin:begin + shard.rows], shard.offset)]


class RowMean:
    """The mean of what workers contribute to rows of a table; what a call returned is overwritten by the next one."""

    def __init__(self, height: int) -> None:
        self.height, self._merge = height, update_rules.RowMerger()
        self._room: tuple[np.ndarray, np.ndarray] | None = None   # ids and values, as many as there were at most

    def __call__(self, contributions: Sequence[Rows]) -> update_rules.MergedRows:
        """Rows summed by id in worker order, divided by the number of all contributors, with the row or without."""
        if len(contributions) == 1:
            # Workers merge what they send.
            rows, = contributions
            return update_rules.MergedRows(rows.ids, rows.values, self.height)
        merged = self._merge(self._together(contributions))
        np.multiply(merged.values, 1.0 / len(contributions), out=merged.values)
        return merged

    def _together(self, contributions: Sequence[Rows]) -> Rows:
        """All rows one behind the other."""
        count, first = sum(len(rows) for rows in contributions), contributions[0].values
        if self._room is None or len(self._room[0]) < count:
            self._room = np.empty(count, np.int64), np.empty((count, *first.shape[1:]), first.dtype)
        ids, values = (one[:count] for one in self._room)
        np.concatenate([rows.ids for rows in contributions], out=ids)
        np.concatenate([rows.values for rows in contributions], out=values)
        return Rows(ids, values, self.height)


class RowGradient:
    """A row gradient on its way through its recipe: merged rows, dense from the first decay on."""

    def __init__(self, table: RowTable, rows: Rows) -> None:
        self.table, self.rows = table, rows
        self._dense: np.ndarray | None = None
        self.variable, self.recipe = table.name, table.recipe
        self.measured: dict[str, np.ndarray] = {}

    def _every_row(self) -> np.ndarray:
        """The gradient of every row kept here, zero where none came; it stays dense from now on."""
        if self._dense is None:
            self._dense = dense = np.zeros_like(self.table.params)
            # Added, as the sum op does: it makes a zero of a negative one.
            dense[self.rows.ids] += self.rows.values
        return self._dense

    def _numbers(self) -> np.ndarray:
        """The array that steps change."""
        return self.rows.values if self._dense is None else self._dense

    def apply(self, step: Step) -> None:
        """Apply a step that needs no norms; a decay concerns every row."""
        grad = self._every_row() if isinstance(step, Decay) else self._numbers()
        step.apply(grad, self.table.params, np.empty_like(grad))

    def scale(self, factor: np.ndarray) -> None:
        """In place."""
        numbers = self._numbers()
        np.multiply(numbers, factor.astype(numbers.dtype), out=numbers)

    def nodes(self) -> list[Node]:
        """The nodes of the tree of squares over this server's shards."""
        if self._dense is not None:
            return self.table.nodes_of(self._dense)
        found: list[Node] = []
        for shard, begin in self.table.placed:
            here = (self.rows.ids >= begin) & (self.rows.ids < begin + shard.rows)
            ids, values = ((self.rows.ids, self.rows.values) if len(self.table.placed) == 1 else
                           (self.rows.ids[here] - begin, self.rows.values[here]))
            found += update_rules.square_nodes_rows(ids, values, shard.offset, shard.rows)
        return found

    def measure(self) -> dict[str, list[Node]]:
        """What the rule's norms are of."""
        table = self.table
        if table.rule.norms is not None:
            self.measured = table.rule.norms.measure(table.params, self._every_row(), *table.states.values(),
                                                     **table.hypers)
        return {what: table.nodes_of(array) for what, array in self.measured.items()}

    def finish(self, squares: tuple[np.ndarray, ...]) -> None:
        """Run the rule."""
        table, rate = self.table, self.table.rates[self.recipe.rate]
        if table.rule.norms is None:
            gradient = self.rows if self._dense is None else self._dense
            table.rule.run(table.params, gradient, rate, *table.states.values(), **table.hypers)
        else:
            table.rule.norms.step(table.params, self.measured, rate, *table.states.values(), squares=squares,
                                  **table.hypers)
