"""What a mode is: its two halves, and every fact that other rooms ask of it.

The worker half is told of every step (``after_backward``), of parameters that came from elsewhere (``restart``) and
of the end (``finish``). The server half is started with its server and told of every piece of a push that comes in
pieces, every whole push, every pull and every worker that leaves; ``late`` names the workers that others have waited
for too long. Both know names and arrays, never a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from fleet_mpi.modes.options import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet_mpi.arrays import Rows
    from fleet_mpi.parameter_server.client import Client
    from fleet_mpi.parameter_server.inbox import Push
    from fleet_mpi.parameter_server.server import Server
    from fleet_mpi.wire.protocol import Header


class WorkerHalf(Protocol):
    """A mode's part in a worker; made with (client, workers=..., one argument for each of ``options``)."""

    options: ClassVar[tuple[str, ...]]

    def after_backward(self, rows: Sequence[Rows | None] = ()) -> None:
        """A step's gradients are in the client's arrays, those of rows in ``rows``."""

    def restart(self) -> None:
        """The parameters were replaced from outside."""

    def finish(self) -> None:
        """Send what is left, and take the parameters it leads to."""


class ServerHalf(Protocol):
    """A mode's part in a server; made with (workers=..., one argument for each of ``options``)."""

    options: ClassVar[tuple[str, ...]]
    applies_alone: bool  # whether a push is applied without those of other workers

    def start(self, server: Server) -> None:
        """Get ready to serve."""

    def on_piece(self, push: Push, number: int) -> None:
        """A piece of a push is here."""

    def on_push(self, push: Push) -> None:
        """All of a push is here."""

    def on_pull(self, worker: int, header: Header) -> None:
        """A worker asks for parameters."""

    def on_leave(self, worker: int) -> None:
        """A worker has left."""

    def late(self, longest: float) -> list[int]:
        """The workers that others have waited for longer than so many seconds."""


class WorkerHalfMaker(Protocol):
    """The class of a worker half."""

    options: tuple[str, ...]

    def __call__(self, client: Client, *args: Any, **told: Any) -> WorkerHalf:
        """Make the half of one worker."""


class ServerHalfMaker(Protocol):
    """The class of a server half."""

    options: tuple[str, ...]

    def __call__(self, *args: Any, **told: Any) -> ServerHalf:
        """Make the half of one server."""


class Mode(NamedTuple):
    """One way for parameters to move."""

    name: str
    worker: WorkerHalfMaker
    server: ServerHalfMaker
    asked_for: Callable[[Any], bool]     # whether a DistributeTranspilerConfig, its sync_mode decided, asks for it
    asks: dict[str, Any]                 # its fields that do, and their values
    told: dict[str, str] = {}            # {option of the mode: the config's field that says it}
    least: dict[str, int] = {}           # of those that are whole numbers
    strategy: dict[str, Any] | None = None  # fields of 2.x's strategy that ask for it; None: 2.x has no word for it
    number: int = 1                      # that the original's servers show
    # Whether servers have the optimizers; else workers do, with whole copies, and servers only add.
    servers_update: bool = True
    # Whether one round of all workers is one update with their mean: programs show its barriers.
    has_rounds: bool = False
    # Whether workers wait for each other, so that they can stop after the same step.
    in_step: bool = False
    corrects_delay: bool = False

    def options_of(self, config: Any) -> dict[str, Any]:
        """The options that a config tells."""
        told = {option: getattr(config, field) for option, field in self.told.items()}
        return {**told,
                **{option: whole(self.told[option], told[option], least) for option, least in self.least.items()}}

    def ask(self, config: Any, **fields: Any) -> None:
        """Let a config ask for this mode; of the other fields those count that tell an option of it."""
        for field, value in self.asks.items():
            setattr(config, field, value)
        for field in set(self.told.values()).intersection(fields):
            setattr(config, field, fields[field])
