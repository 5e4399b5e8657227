"""A table that travels by rows: its description, and what one server keeps of it.

A server keeps its shards of a table one after the other as one array, with optimizer states beside it; row numbers
within that array, *local* ids, are what travels. Row gradients are summed by id in the order of the workers and
divided by the number of all that contributed, as dense ones are, and updated by the same recipe.
"""

from typing import NamedTuple

import numpy as np

from fleet_mpi import arrays, update_rules
from fleet_mpi.arrays import Rows, aligned
from fleet_mpi.errors import PeerLost
from fleet_mpi.kernels.reference import rows as row_kernels
from fleet_mpi.parameter_server import messages, norms
from fleet_mpi.parameter_server.recipes import BoundNorm, Decay


class RowTableDescription(NamedTuple):
    """What workers and servers must know of a table: plain data. ``shards`` are all of its shards, cut by rows."""

    name: str
    shape: tuple
    dtype: str
    shards: tuple
    recipe: object

    @property
    def height(self):
        """How many rows there are."""
        return self.shape[0]

    @property
    def width(self):
        """How many elements a row has."""
        return int(np.prod(self.shape[1:], dtype=np.int64))

    def of_server(self, server):
        """(shard, its first local row) of every shard that a server keeps, in order of rows."""
        found, begin = [], 0
        for shard in sorted(self.shards, key=lambda one: one.row_begin):
            if shard.server == server:
                found.append((shard, begin))
                begin += shard.rows
        return found

    def table(self, server, rates):
        """What a server keeps; ``rates`` is {name: [1] array}."""
        return RowTable(self, server, rates)


class RowTable:
    """One server's part of a table."""

    def __init__(self, description, server, rates):
        self.description, self.rates, self.recipe = description, rates, description.recipe
        self.name, self.width, self.dtype = description.name, description.width, np.dtype(description.dtype)
        self.placed = description.of_server(server)
        self.height = sum(shard.rows for shard, _ in self.placed)
        self.rule = update_rules.RULES[self.recipe.rule]
        self.params = arrays.empty((self.height, self.width), self.dtype)
        self.params[...] = 0
        known = {**self.rule.hypers, **self.rule.setup}
        given = {name: value for name, value in self.recipe.hypers if name in known}
        self.states = dict(zip((state.name for state in self.rule.states),
                               self.rule.new_states(self.params, **given), strict=True))
        self.hypers = self.rule.complete({name: value for name, value in given.items() if name in self.rule.hypers})
        self._begins = {shard.block: (shard, begin) for shard, begin in self.placed}
        self._merge = update_rules.RowMerger()

    # ------------------------------------------------------------------ values by name, as in DenseTable

    def shards(self):
        """The shards kept here."""
        return tuple(shard for shard, _ in self.placed)

    def param(self, variable, block):
        """The values of one shard: a view."""
        return self._part(self.params, block)

    def state(self, variable, block, name):
        """A state of one shard: a view; for one number per table a copy in [1]."""
        return self._part(self.states[name], block) if self._is_like_param(name) else self.states[name].copy()

    def set_state(self, variable, block, name, values):
        """Take over a state of one shard."""
        (self._part(self.states[name], block) if self._is_like_param(name) else self.states[name])[...] = values

    def _part(self, array, block):
        shard, begin = self._begins[block]
        return array[begin:begin + shard.rows].reshape(shard.shape)

    def _is_like_param(self, name):
        return next(state.like_param for state in self.rule.states if state.name == name)

    # ------------------------------------------------------------------ what travels

    def parts(self, count):
        """(count, bytes) of so many rows with their ids in a push."""
        if not 0 <= count <= self.height:
            raise PeerLost(f"table {self.name!r}: a push of {count} rows to a server that keeps {self.height}: do both "
                           f"run the same program?")
        return count, messages.rows_bytes(count, self.width, self.dtype)

    def rows_in(self, body, count):
        """The Rows, by local ids, that so many bytes hold: views of them."""
        ids = body[:8 * count].view(np.int64)
        self._refuse_outside(row_kernels.first_outside(ids, self.height), ids)
        values = body[aligned(8 * count):][:count * self.width * self.dtype.itemsize].view(self.dtype)
        return Rows(ids, values.reshape(count, self.width), self.height)

    def pull(self, ids, out=None):
        """The rows of local ids, in a new array or in the one given."""
        out = arrays.empty((len(ids), self.width), self.dtype) if out is None else out
        self._refuse_outside(row_kernels.gather_rows(self.params, ids, out, row_kernels.NO_PADDING), ids)
        return out

    def _refuse_outside(self, position, ids):
        if position != row_kernels.ALL_INSIDE:
            raise PeerLost(f"table {self.name!r}: asked for local row {ids[position]}, this server keeps "
                           f"{self.height}: do both run the same program?")

    # ------------------------------------------------------------------ updating

    def update_mean(self, contributions):
        """One update by the mean of the contributors' Rows, given in worker order: of all, with the row or without.

        Not for recipes with norms; those need ``update_with_norms``.
        """
        gradient = _Gradient(self, self._mean(contributions))
        for step in self.recipe.steps:
            gradient.take(step)
        self._run_rule(gradient)

    def _mean(self, contributions):
        if len(contributions) == 1:
            # Workers merge what they send.
            rows, = contributions
            return update_rules.MergedRows(rows.ids, rows.values, self.height)
        merged = self._merge(Rows(np.concatenate([rows.ids for rows in contributions]),
                                  np.concatenate([rows.values for rows in contributions]), self.height))
        np.multiply(merged.values, 1.0 / len(contributions), out=merged.values)
        return merged

    def _run_rule(self, gradient):
        self.rule.run(self.params, gradient.whatever(), self.rates[self.recipe.rate], *self.states.values(),
                      **self.hypers)

    def update_with_norms(self, contributions, recipes):
        """The update as a generator, in step with all others of the job (see ``norms``), whose recipes are given."""
        gradient = _Gradient(self, self._mean(contributions))
        for position in range(norms.most_steps(recipes)):
            step = self.recipe.steps[position] if position < len(self.recipe.steps) else None
            wanted = {(self.name, "gradient"): gradient.nodes()} if isinstance(step, BoundNorm) else {}
            sums = (yield wanted) if norms.asks_at(recipes, position) else {}
            if isinstance(step, BoundNorm):
                gradient.scale(step.factor(norms.sum_for(step, self.name, recipes, sums)))
            elif step is not None:
                gradient.take(step)
        yield from self._finish(gradient, recipes)

    def _finish(self, gradient, recipes):
        """The rule, with the norms of the whole table where it needs them."""
        halves, measured = self.rule.norms, {}
        if halves is not None:
            measured = halves.measure(self.params, gradient.dense(), *self.states.values(), **self.hypers)
        asked = {(self.name, what): self._nodes(array) for what, array in measured.items()}
        sums = (yield asked) if norms.asks_at_the_end(recipes) else {}
        if halves is None:
            self._run_rule(gradient)
        else:
            squares = tuple(sums[self.name, what] for what in measured)
            halves.step(self.params, measured, self.rates[self.recipe.rate], *self.states.values(), squares=squares,
                        **self.hypers)

    def _nodes(self, array):
        """The nodes of the tree of squares of an array that lies as the table does."""
        table = array.reshape(self.height, self.width)
        return [node for shard, begin in self.placed
                for node in update_rules.square_nodes(table[begin:begin + shard.rows], shard.offset)]


class _Gradient:
    """A row gradient on its way through a recipe: merged rows, dense from the first decay on."""

    def __init__(self, table, rows):
        self.table, self.rows, self._dense = table, rows, None

    def whatever(self):
        """What the rule gets: an array if it is dense by now, else rows."""
        return self.rows if self._dense is None else self._dense

    def dense(self):
        """The gradient of every row kept here, zero where none came; it stays dense from now on."""
        if self._dense is None:
            self._dense = np.zeros_like(self.table.params)
            # Added, as the sum op does: it makes a zero of a negative one.
            self._dense[self.rows.ids] += self.rows.values
        return self._dense

    def numbers(self):
        """The array that steps change."""
        return self.rows.values if self._dense is None else self._dense

    def take(self, step):
        """Apply a step that needs no norms; a decay concerns every row."""
        grad = self.dense() if isinstance(step, Decay) else self.numbers()
        step.apply(grad, self.table.params, np.empty_like(grad))

    def scale(self, factor):
        """Multiply by one number, rounded to the gradient's type first."""
        numbers = self.numbers()
        np.multiply(numbers, factor.astype(numbers.dtype), out=numbers)

    def nodes(self):
        """The nodes of the tree of squares over this server's shards."""
        if self._dense is not None:
            return self.table._nodes(self._dense)
        found = []
        for shard, begin in self.table.placed:
            here = (self.rows.ids >= begin) & (self.rows.ids < begin + shard.rows)
            ids, values = ((self.rows.ids, self.rows.values) if len(self.table.placed) == 1 else
                           (self.rows.ids[here] - begin, self.rows.values[here]))
            found += update_rules.square_nodes_rows(ids, values, shard.offset, shard.rows)
        return found


def answer_of(tables, counts, ids):
    """The bytes that answer a request for rows: ``counts`` of each table, whose local ids lie in ``ids`` (bytes)."""
    sizes = [aligned(count * table.width * table.dtype.itemsize) for table, count in zip(tables, counts)]
    body, start, begin = arrays.empty(sum(sizes), np.uint8), 0, 0
    for table, count, size in zip(tables, counts, sizes):
        out = body[start:start + count * table.width * table.dtype.itemsize].view(table.dtype)
        table.pull(ids[begin:begin + 8 * count].view(np.int64), out.reshape(count, table.width))
        start, begin = start + size, begin + aligned(8 * count)
    return body
