"""A worker's training from its first use on: the connection to the servers, and what a step, a save and a load are.

Made by all workers together; a step is one exchange of ``connections``, as it is for programs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fleet_mpi import arrays, notices, settings
from fleet_mpi.checkpoint.folders.transaction import Author
from fleet_mpi.door import gate, saving
from fleet_mpi.door.averaging import Averaging
from fleet_mpi.door.local_update import LocalUpdate
from fleet_mpi.door.values import Values
from fleet_mpi.errors import CheckpointDamaged, FleetError
from fleet_mpi.parameter_server import agreement
from fleet_mpi.parameter_server.description import param
from fleet_mpi.parameter_server.state import ServerState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np

    from fleet_mpi.door.declaration import Declaration
    from fleet_mpi.door.declaring import Declaring
    from fleet_mpi.door.peers import Peers
    from fleet_mpi.door.sums import Sums
    from fleet_mpi.door.tables import Table

    Folder = str | os.PathLike[str]


class Training:
    """One worker's part in what was declared. ``sums()`` gives what sums over workers, Collective at first."""

    def __init__(self, peers: Peers, declaring: Declaring, sums: Callable[[], Sums]) -> None:
        self.peers, self.declaring, self.sums = peers, declaring, sums
        self.server, self.tables, self.rates = declaring.server, list(declaring.tables.values()), declaring.rates
        self.is_without_servers = not peers.servers and peers.workers > 1
        declared = self._agreed()
        self.connection = peers.connect(declared, None if self.server is None else self.server.flat)
        self.averaging = Averaging(sums(), self.connection) if self.is_without_servers else None
        self._spread_first_values()
        self.local = None if self.server is None or declared.servers_update else LocalUpdate(
            declared, self.rates, self.server.flat)
        self.steps_before = 0   # of the run that was loaded

    def _agreed(self) -> Declaration:
        """Collective: what all workers declare, with worker 0's seed; a difference is refused."""
        declared = self.declaring.declared
        seed = settings.get("FLEET_MPI_SEED") or int.from_bytes(os.urandom(7), "little")
        all_have = self.peers.all_gather({**agreement.compact(declared.fingerprint()), "seed": seed})
        seed = [one.pop("seed") for one in all_have][0]
        agreement.refuse_differences(all_have, self.peers.worker)
        return declared._replace(seed=seed)

    def _spread_first_values(self) -> None:
        """Collective: let servers and workers have worker 0's first values."""
        first = self.declaring.first_values()
        if self.is_without_servers:
            self.sums().broadcast(list(first.values()))
        if self._has_servers_to_itself:
            state = ServerState(self.connection.client)
            for name, array in first.items():
                state.store(param(name), array)
        self.peers.barrier()
        self.pull()

    @property
    def _has_servers_to_itself(self) -> bool:
        """Whether this worker is the one that gives values to the servers, which may be its own."""
        return self.is_without_servers or self.peers.worker == 0

    # ------------------------------------------------------------------ steps

    @property
    def steps(self) -> int:
        """How many steps this worker has ended, those of a run that was loaded included."""
        return self.steps_before + self.connection.steps

    def step(self) -> None:
        """End a step."""
        connection = self.connection
        for number, table in enumerate(self.tables):
            connection.rows[number] = table._take()
        if not self.rates.are_settled:
            self.rates.write(connection.client.rates, connection.client.description.rates, self.steps)
        if self.local is not None:
            self.local.update(self.steps)
        if self.averaging is not None:
            self.averaging.average()
        connection.exchange()
        self._fill()

    def pull(self) -> None:
        """Take the servers' parameters as they are."""
        self.connection.pull()
        self._fill()

    def pull_rows(self, table: Table, ids: np.ndarray, shape: tuple[int, ...], out: np.ndarray | None) -> np.ndarray:
        """The rows of some ids, in ``out`` if it is given."""
        client, number = self.connection.client, self.connection.table_numbers[table.name]
        if out is not None and out.flags.c_contiguous:
            client.pull_rows({number: ids}, {number: [out]})
            return out
        rows: np.ndarray = client.pull_rows({number: ids})[number].reshape(shape)
        if out is None:
            return rows
        out[...] = rows
        return out

    def count_rows(self, table: Table) -> int:
        """How many rows the servers store of a table that grows."""
        self.connection.flush()
        return ServerState(self.connection.client).count(table.name)

    def shrink(self, table: Table, kind: str, number: int) -> int:
        """Let the servers forget rows of a table that grows; returns how many went."""
        self.connection.flush()
        return ServerState(self.connection.client).shrink(table.name, kind, number)

    def finish(self) -> None:
        """Send what is left, say goodbye."""
        for table in self.tables:
            rows = table._take()
            if rows is not None:
                notices.log().warning("table %r: gradients of %d rows were pushed after the last step, and are lost: "
                                      "end with push_pull or job.step()", table.name, len(rows.ids))
        self.connection.finish()
        self._fill()

    def _fill(self) -> None:
        if self.server is not None and self.server.fills:
            self.server._fill()

    # ------------------------------------------------------------------ values, whole

    def values(self) -> Values:
        """All that is kept, with all that this worker has pushed."""
        self.connection.flush()
        self._fill()
        return Values(self.connection, self.local)

    def save(self, folder: Folder, format: str | None) -> None:
        """Write everything, if this is the first of the workers that are left."""
        filename, values = saving.file_for(format), self.values()
        writer = 0 if self.is_without_servers else min(self.connection.workers_left())
        if self.peers.worker == writer:
            rates = {name: rate.value for name, (rate, _) in self.rates.known.items() if not callable(rate.value)}
            saving.save(values, folder, filename, Author(self.connection.job, self.steps, self.peers.worker),
                        {"steps": self.steps, "rates": rates})
        else:
            notices.log().info("save: worker %d writes %s, when it comes to its own save", writer, folder)

    def load(self, folder: Folder, states: bool) -> None:
        """Collective: let servers and workers have what was saved; worker 0 reads it."""
        values = self.values()
        self.peers.barrier()   # nobody's pushes come after what is loaded
        notes = self._by_first(lambda: saving.notes_of(folder), f"load {str(folder)!r}")
        self.store(values, lambda: saving.load(values, folder, notes, states), f"load {str(folder)!r}",
                   values.names if states else [name for name in values.names if name not in values.states])
        if states:
            self._go_on_from(notes)

    def _go_on_from(self, notes: dict[str, Any]) -> None:
        """Let steps and rates be those of a save."""
        self.steps_before = int(notes.get("steps", 0)) - self.connection.steps
        for name, value in notes.get("rates", {}).items():
            if name in self.rates.known:
                self.rates.known[name][0].set(value)

    def store(self, values: Values, found: Callable[[], Iterable[tuple[str, np.ndarray]]], what: str,
              names: list[str]) -> None:
        """Collective: let servers and workers have the values of these names that worker 0 finds."""
        mine = [name for name in names if self.is_without_servers or name in values.own]
        kept: dict[str, np.ndarray] = {}

        def be_first() -> dict[str, list[int]]:
            with values.servers.frozen(alone=True), values.storing() as store:
                for name, array in found():
                    if name in mine:
                        kept[name] = array
                    else:
                        store(name, array)
            return {name: list(array.shape) for name, array in kept.items()}
        shapes = self._by_first(be_first, what)
        with values.storing() as store:
            for name in mine:
                array = kept[name] if name in kept else arrays.empty(shapes[name], values.look(name)[1])
                self.sums().broadcast([array])
                store(name, array)
        self.pull()

    def _by_first(self, do: Callable[[], Any], what: str) -> Any:
        """Collective: worker 0 does something; all get what it returned, or its error."""
        failed: FleetError | None = None
        told: dict[str, Any] = {}
        if self.peers.worker == 0:
            try:
                told["found"] = do()
            except FleetError as error:
                failed, told["error"] = error, str(error)
        told = self.peers.all_gather(told)[0]
        if failed is not None:
            raise failed
        if "error" in told:
            theirs = CheckpointDamaged(f"{what}: worker 0 says: {told['error']}")
            theirs.reported_by_peer = True
            raise theirs
        return told["found"]

    def fetched(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (name, whole array) of all that is kept, or of some, of one moment."""
        values = self.values()
        names = values.names if names is None else list(names)
        gate.refuse_unknown(names, values.names, "fetch")
        with values.at_one_moment(names):
            yield from values.read(names)
