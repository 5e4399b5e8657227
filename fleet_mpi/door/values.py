"""All that a job keeps, whole and by name: parameters, tables, and the states of their rules, wherever these are.

Names are those that files have: a parameter's own, and for a state ``NAME_STATE_0``, as the original calls it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleet_mpi.door import gate
from fleet_mpi.errors import CheckpointDamaged
from fleet_mpi.parameter_server.state import ServerState, fits
from fleet_mpi.parameter_server.tables.base import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    import numpy as np

    from fleet_mpi.connections.worker import WorkerConnection
    from fleet_mpi.door.local_update import LocalUpdate
    from fleet_mpi.parameter_server.description import StateKey


class Values:
    """What servers have, and where workers have the optimizers, this worker's states."""

    def __init__(self, connection: WorkerConnection, local: LocalUpdate | None) -> None:
        self.servers, self.local = ServerState(connection.client), local
        self.keys: dict[str, StateKey] = self.servers.inventory.by_program_name()
        self.own = {} if local is None else local.states()
        self.names = sorted({*self.keys, *self.own})

    @property
    def states(self) -> list[str]:
        """The names of states; all others are parameters and tables, ids of rows included."""
        return [name for name in self.names
                if name in self.own or self.keys[name].kind != "param" and self.keys[name].state != KEYS]

    @property
    def growing(self) -> list[str]:
        """The names of tables that have a row for any id."""
        return [name for name, key in self.keys.items() if key.kind == "param" and self.servers.inventory.grows(key)]

    def columns_of(self, table: str) -> list[str]:
        """The names of what has a row for each row of a table."""
        return [name for name, key in self.keys.items() if key.variable == table
                and key.kind in ("param", "state") and self.servers.inventory.is_spread(key)]

    def look(self, name: str) -> tuple[tuple[int, ...], np.dtype]:
        """(shape, type) of a value; ANY_HEIGHT first where only servers know how many rows there are."""
        if name in self.own:
            return self.own[name].shape, self.own[name].dtype
        return self.servers.inventory.shape_and_dtype(self.keys[name])

    @contextmanager
    def at_one_moment(self, names: Iterable[str] | None = None) -> Iterator[None]:
        """What is read within the block, of these names, is of one moment; training goes on."""
        names = self.names if names is None else names
        with self.servers.copied([self.keys[name] for name in names if name in self.keys]):
            yield

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (name, whole array), in order."""
        names = list(names)
        fetched = self.servers.fetch_all([self.keys[name] for name in names if name in self.keys])
        for name in names:
            yield name, self.own[name].copy() if name in self.own else next(fetched)

    @contextmanager
    def storing(self) -> Iterator[Callable[[str, np.ndarray], None]]:
        """Gives what lets the servers, or this worker, have whole arrays by name.

        Those of a table that grows are stored at the end of the block.
        """
        with self.servers.storing() as to_servers:
            def store(name: str, array: np.ndarray) -> None:
                if name in self.own:
                    self.local.set_state(name, array)  # type: ignore[union-attr]
                else:
                    to_servers(self.keys[name], array)
            yield store

    def fits(self, name: str, array: np.ndarray) -> bool:
        """Whether an array can be this value."""
        return fits(array, *self.look(name))

    def checked(self, name: str, array: Any, what: str) -> np.ndarray:
        """A view of an array of the caller's that is to become this value."""
        view = gate.view_of(array, what)
        return view if self.fits(name, view) else gate.like(view, *self.look(name), what)

    def refuse_misfits(self, found: Mapping[str, np.ndarray], source: str) -> None:
        """CheckpointDamaged, with the names, where arrays do not fit what is kept."""
        wrong = [f"{name}: kept {dtype}{list(shape)}, found {array.dtype}{list(array.shape)}"
                 for name, array in found.items() for shape, dtype in [self.look(name)] if not self.fits(name, array)]
        if wrong:
            raise CheckpointDamaged(f"{source}: the values do not fit what this job keeps: {'; '.join(wrong[:20])}")
