"""Half-asynchronous training: a worker waits for its own pushes, never for other workers.

The gradients of ``max_merge_var_num`` batches are averaged, sent, and the worker goes on with the parameters that
come back: all batches of one average saw the same parameters (the original merges those of a worker's threads).
The servers apply it like any asynchronous push. What is left at the end is averaged over the batches it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fleet_mpi.modes import options
from fleet_mpi.modes.asynchronous import AsyncServer
from fleet_mpi.modes.base import Mode
from fleet_mpi.modes.merging import Merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.arrays import Rows
    from fleet_mpi.parameter_server.client import Client


class HalfAsyncWorker:
    """The worker half: some batches, then one exchange."""

    options: ClassVar[tuple[str, ...]] = ("max_merge_var_num",)

    def __init__(self, client: Client, workers: int = 1, max_merge_var_num: int = 1) -> None:
        self.client = client
        self.most_merged = options.whole("max_merge_var_num", max_merge_var_num, 1)
        self.merged = Merged(client.layout) if self.most_merged > 1 else None

    def after_backward(self, rows: Sequence[Rows | None] = ()) -> None:
        """Add the step's gradients; the last batch of an average waits for the parameters."""
        if self.merged is None:
            self.client.collect(self.client.push_pull(rows))
            return
        self.merged.add(self.client.grads, rows)
        if self.merged.count >= self.most_merged:
            self._exchange(self.merged)

    def restart(self) -> None:
        """The parameters were replaced from outside; gradients are kept."""

    def finish(self) -> None:
        """Send the batches of an average that is not full."""
        if self.merged is not None and self.merged.count:
            self._exchange(self.merged)

    def _exchange(self, merged: Merged) -> None:
        merged.average()
        self.client.collect(self.client.push_pull(merged.rows, merged.count, merged.flat))
        merged.clear()


class HalfAsyncServer(AsyncServer):
    """The server half: as in asynchronous training."""


MODE = Mode("half_async", HalfAsyncWorker, HalfAsyncServer, lambda config: not config.sync_mode,
            {"sync_mode": False, "half_async": True}, number=2)
