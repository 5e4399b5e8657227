"""The seam of tables: what servers, workers, modes and saves know of anything that is kept.

A table comes in parts, and a kind of table is one file, or folder, with all of them:

    Described   plain data that all ranks of a job agree on; makes the other two
    Table       what one server keeps of it
    Route       a worker's knowledge of which server has which row, for tables that are asked for rows by id
    Copies      a worker's own rows, where workers train by themselves

What a push holds for a table, and what a request for rows and its answer hold, are lines of bytes whose length follows
from a *count* of rows that is sent before them; a table that travels whole has no use for the count. No table knows
messages, and no other room knows what a table looks like inside. Of the dense table servers and modes know one thing
more: it lies in an image of bytes (``params``), which is updated and answered piece by piece (``update_piece``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleet_mpi.parameter_server.recipes import Recipe, Step
    from fleet_mpi.placement.shard import Shard
    from fleet_mpi.update_rules import MergedRows, State

    class Variable(Protocol):
        """What is known of a variable."""

        @property
        def name(self) -> str:
            """Its name."""

        @property
        def shape(self) -> tuple[int, ...]:
            """Of the whole; ANY_HEIGHT first where only servers know how many rows there are."""

        @property
        def dtype(self) -> str:
            """The type of an element."""

# Columns of a table that grows besides the states of its rule; KEYS, SCORES and UPDATES go on its name in files.
KEYS, VALUES, SCORES, COUNT, UPDATES = "@KEYS", "@VALUES", "@SCORES", "@COUNT", "@UPDATES"

Contribution: TypeAlias = Any   # what a table reads from a push: each kind's own
Node: TypeAlias = tuple[int, int, float]   # of a tree of squares: level, index, sum


class StateLook(NamedTuple):
    """How a state of a variable looks; ``is_spread``: it is cut as the variable is, else it is one number."""

    shape: tuple[int, ...]
    dtype: np.dtype
    is_spread: bool


def looks_of(states: Iterable[State], shape: Sequence[int], dtype: Any) -> dict[str, StateLook]:
    """{name: how the state looks} of a rule's states, for a variable of this shape and type."""
    return {state.name: StateLook(tuple(shape) if state.like_param else (1,), np.dtype(state.dtype or dtype),
                                  state.like_param) for state in states}


class Described(Protocol):
    """What all ranks know of a table. The variables of a table share its fate: one for rows, many in the dense one."""

    @property
    def variables(self) -> Mapping[str, Variable]:
        """All of the table, by name."""

    def recipe_of(self, variable: str) -> Recipe:
        """How a variable is updated."""

    def states_of(self, variable: Variable) -> Mapping[str, StateLook]:
        """{the rule's name of a state: how it looks}."""

    def shards_of(self, variable: str) -> Sequence[Shard]:
        """All shards of a variable, in order: together they are the whole of it, unless it grows."""

    def table(self, server: int, rates: Mapping[str, np.ndarray]) -> Table:
        """What server number ``server`` keeps; ``rates`` is {name: [1] array}, which changes in place."""


class DescribedByRows(Described, Protocol):
    """What all ranks know of a table that is asked for rows by id."""

    @property
    def name(self) -> str:
        """Of its one variable."""

    @property
    def dtype(self) -> str:
        """The type of an element."""

    @property
    def width(self) -> int:
        """How many elements a row has."""

    @property
    def recipe(self) -> Recipe:
        """How rows are updated, by the servers or on workers' own copies."""

    def table(self, server: int, rates: Mapping[str, np.ndarray]) -> TableByRows:
        """What a server keeps."""

    def copies(self, rates: Mapping[str, np.ndarray], share: float) -> Copies:
        """A worker's own copies of rows, which its rule updates; ``rates`` is {name: [1] array}, ``share`` the part of
        what copies moved by that goes to the servers. UsageError where a table has none.
        """

    def route(self, servers: int) -> Route:
        """The way to its rows in a job of so many servers."""


class Route(Protocol):
    """A worker's: where rows are. Ids are int64; what servers are asked for, *local* ids, their table understands."""

    def check(self, ids: np.ndarray) -> None:
        """Refuse ids that cannot be rows of the table."""

    def split(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """(local ids ordered by server, the positions they were at, or None for as they were; how many per server)."""


class Copies(Protocol):
    """A worker's own copies of the rows that it uses, where workers train by themselves."""

    width: int
    dtype: np.dtype

    def missing(self, ids: np.ndarray) -> np.ndarray:
        """Those of some ids, each once, whose rows ``take`` must have before they are used."""

    def take(self, ids: np.ndarray, values: np.ndarray) -> None:
        """Rows as the servers have them, each once."""

    def make_room(self) -> None:
        """Forget what is not needed, where memory is."""

    def read(self, ids: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` with copies of rows, none of them missing; ids may repeat."""

    def update(self, rows: MergedRows) -> None:
        """Run the worker's rule on copies, none of them missing."""

    def moved(self) -> MergedRows:
        """What goes to the servers of what copies moved by since the last exchange."""

    @property
    def moving(self) -> np.ndarray:
        """The ids of what ``moved`` gave: rows that ``settle`` wants."""

    def settle(self, values: np.ndarray) -> None:
        """End an exchange with the rows that servers have now."""

    def restart(self) -> None:
        """The servers' values replace what copies moved by."""


class Gradient(Protocol):
    """The averaged gradient of a variable, or of a part of it, on its way through its recipe (see ``norms``)."""

    variable: str
    recipe: Recipe

    def apply(self, step: Step) -> None:
        """Apply a step that needs no norm."""

    def scale(self, factor: np.ndarray) -> None:
        """Multiply by one number, rounded to the gradient's type first."""

    def nodes(self) -> list[Node]:
        """The nodes of the tree of squares of the gradient."""

    def measure(self) -> dict[str, list[Node]]:
        """{what: nodes} of what the rule wants the norms of; nothing for most rules."""

    def finish(self, squares: tuple[np.ndarray, ...]) -> None:
        """Run the rule, with the sums of squares of what was measured, in that order."""


class Columns(Protocol):
    """All rows that a server stores, by columns: KEYS, VALUES, and each state of the rule; for loading and saving."""

    def get(self, name: str) -> np.ndarray:
        """A column, in the same order as the others: a view. A state that is one number for the table, and COUNT, in
        [1]. KeyError where there is none.
        """

    def take(self, columns: Mapping[str, np.ndarray], are_last: bool) -> None:
        """Take over rows; with the last ones, forget those that did not come. Without states, rows that are here keep
        theirs. PeerLost for columns that cannot be.
        """

    def evict(self, kind: str, number: int) -> int:
        """Forget rows by their scores; returns how many. UsageError where that score is not kept."""


class Table(Protocol):
    """What one server keeps of a table, and how that changes."""

    @property
    def needs_norms(self) -> bool:
        """Whether any variable of the table, on any server, takes norms in its update."""

    @property
    def columns(self) -> Columns | None:
        """What has the values of a table that grows, which has no shards; None for any other."""

    # What travels.

    def push_bytes(self, count: int) -> int:
        """The bytes that a push of so many rows has for this table; PeerLost for a count that cannot be."""

    def read(self, body: np.ndarray, count: int) -> Contribution:
        """What a worker contributes by these bytes of its push: views of them; PeerLost where they are damaged."""

    def answer_bytes(self, count: int) -> int:
        """The bytes that answer a request for so many rows; PeerLost for a count that cannot be."""

    def answer(self, ids: np.ndarray, out: np.ndarray) -> None:
        """Write the rows of these local ids to the bytes that answer; PeerLost for ids that cannot be."""

    # Updating. Contributions are what ``read`` gave, one for each worker, in worker order; they may be changed.

    def update(self, contributions: Sequence[Contribution]) -> None:
        """One update by the mean of the contributions, where no table of the job needs norms."""

    def gradients(self, contributions: Sequence[Contribution]) -> Sequence[Gradient]:
        """The mean of the contributions, ready for an update with norms."""

    # Values by name, for loading and saving.

    def shards(self) -> Sequence[Shard]:
        """The shards kept here."""

    def param(self, variable: str, block: int) -> np.ndarray:
        """The values of one shard: a view."""

    def state(self, variable: str, block: int, name: str) -> np.ndarray:
        """A state of one shard: a view; for one number per variable a copy in [1]."""

    def set_state(self, variable: str, block: int, name: str, values: np.ndarray) -> None:
        """Take over a state of one shard."""


class TableByRows(Table, Protocol):
    """A table that is asked for rows by id."""

    def refuse(self, contributions: Sequence[Contribution]) -> None:
        """EnvironmentProblem where there is no room for an update by these; changes nothing."""
