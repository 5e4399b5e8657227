"""What the workers of a job want servers to keep: plain data that travels as JSON, and the terms that it comes down to.

All ranks make their terms from the same words, so that they cannot differ.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fleet_mpi import modes
from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.connections.terms import Terms
from fleet_mpi.door import first_values, keeping, recipes
from fleet_mpi.errors import PeerLost, UsageError, nearest
from fleet_mpi.parameter_server import tables
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import Recipe
from fleet_mpi.parameter_server.tables.growing.keeping import EVERYTHING, Keeping
from fleet_mpi.placement import Variable, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet_mpi.connections.server import Prepare

# Which server keeps a block; "whole": a variable is never cut.
SPLITS = {"round_robin": ("RoundRobin", True), "hash_name": ("HashName", True), "balanced": ("Balanced", True),
          "whole": ("Balanced", False)}


class Kept(NamedTuple):
    """A parameter or a table: how it looks and is updated; ``init`` is what servers draw a table's rows from.

    A table that grows is ANY_HEIGHT high; ``keeping`` says which rows it keeps.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    recipe: Recipe
    init: tuple[Any, ...] = ()
    keeping: Keeping = EVERYTHING

    @property
    def grows(self) -> bool:
        """Whether it has a row for every id."""
        return self.shape[:1] == (ANY_HEIGHT,)


class Declaration(NamedTuple):
    """All that servers are to keep, and when it moves."""

    parameters: tuple[Kept, ...] = ()
    tables: tuple[Kept, ...] = ()
    mode: str = "sync"
    options: dict[str, Any] = {}   # of the mode
    split: str = "round_robin"
    seed: int = 0                  # of what servers draw; worker 0's counts

    @property
    def rates(self) -> dict[str, str]:
        """{learning rate: its type}: float64 where a variable of that type has it."""
        found: dict[str, str] = {}
        for one in (*self.parameters, *self.tables):
            found[one.recipe.rate] = str(np.result_type(one.dtype, found.get(one.recipe.rate, one.dtype)))
        return found

    @property
    def servers_update(self) -> bool:
        """Whether servers have the optimizers; else workers do."""
        return modes.MODES[self.mode].servers_update

    # ------------------------------------------------------------------ as words

    def to_bytes(self) -> bytes:
        """As JSON."""
        kept = [[[one.name, list(one.shape), one.dtype, recipes.to_plain(one.recipe), list(one.init), list(one.keeping)]
                 for one in group] for group in (self.parameters, self.tables)]
        return json.dumps([*kept, self.mode, self.options, self.split, self.seed], sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, told: bytes, source: str) -> Declaration:
        """And back; PeerLost where it cannot be read."""
        try:
            parameters, by_rows, mode, options, split, seed = json.loads(told)
            kept = [tuple(Kept(name, tuple(shape), dtype, recipes.from_plain(recipe), tuple(init),
                               keeping.from_plain(words))
                          for name, shape, dtype, recipe, init, words in group) for group in (parameters, by_rows)]
            return cls(kept[0], kept[1], mode, dict(options), split, int(seed))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise PeerLost(f"{source} declared something that cannot be read: {told[:40]!r}...") from None

    def fingerprint(self) -> dict[str, Any]:
        """What workers compare, in words for people: all but the seed."""
        def look(one: Kept) -> str:
            steps = ", ".join(repr(step) for step in one.recipe.steps)
            hypers = ", ".join(f"{name}={value}" for name, value in one.recipe.hypers)
            shape = f"rows of {one.shape[1]} for any id" if one.grows else str(list(one.shape))
            return f"{one.dtype} {shape} by {one.recipe.rule}({hypers}) at {one.recipe.rate}" + (
                f" after {steps}" if steps else "") + (f" from {list(one.init)}" if one.init else "") + (
                keeping.in_words(one.keeping))
        return {"parameter": {one.name: look(one) for one in self.parameters},
                "table": {one.name: look(one) for one in self.tables},
                "order of parameters": [one.name for one in self.parameters], "mode": self.mode,
                "options": {name: repr(value) for name, value in self.options.items()}, "split": self.split}

    # ------------------------------------------------------------------ as terms

    def terms(self, endpoints: Sequence[str], workers: int, worker: int | None = None) -> Terms:
        """What the connections of a job with these servers need."""
        return Terms(self.description(len(endpoints)), tuple(endpoints), workers, worker, self.mode, self.options,
                     {"declaration": hashlib.sha256(self.to_bytes()).hexdigest()})

    def description(self, servers: int) -> Description:
        """The tables of so many servers."""
        method, slice_up = SPLITS[self.split]
        variables = [_variable(one) for one in (*self.parameters, *self.tables) if not one.grows]
        placed, keeps = place(variables, servers, method, slice_up), self.servers_update
        by_rows = tuple(
            tables.described("growing", one.name, one.shape[1], one.dtype, one.recipe, one.init,
                             first_values.key_of(self.seed, one.name), one.keeping, not keeps) if one.grows else
            tables.described("rows", *one[:3], placed.of_variable(one.name), one.recipe) for one in self.tables)
        recipe = {one.name: one.recipe if keeps else Recipe("sgd", rate=one.recipe.rate) for one in self.parameters}
        rates = self.rates
        sent = tuple(rates) if keeps else tuple(dict.fromkeys(one.recipe.rate for one in self.tables))
        return Description(placed.only({one.name for one in self.parameters}), recipe, sent, by_rows,
                           {name: dtype for name, dtype in rates.items() if dtype != "float32"}, keeps)

    def prepare(self) -> Prepare:
        """What gives a server the rows that it draws itself; everything else begins with zeros, or is drawn as it
        grows."""
        return first_values.drawn({one.name: one.init for one in self.tables if one.init and not one.grows}, self.seed)


def _variable(one: Kept) -> Variable:
    return Variable(one.name, one.shape, one.dtype)


def split_named(name: Any) -> str:
    """A way to split, by name."""
    if name not in SPLITS:
        raise UsageError(f"split: no way to split is called {name!r}; {nearest(name, SPLITS)}")
    return str(name)


def refuse_equal_names(kept: Iterable[Kept]) -> None:
    """Files and servers know variables and states by name: no two may have the same."""
    seen: dict[str, str] = {}
    for one in kept:
        for name, what in ((one.name, f"{one.name!r}"),
                           *((name, f"the state {state!r} of {one.name!r}") for state, name in one.recipe.states)):
            if name in seen:
                raise UsageError(f"{what} and {seen[name]} would both be called {name!r}: give one another name")
            seen[name] = what
