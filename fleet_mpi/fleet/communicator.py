"""Communicator: the handle with which scripts of 1.x start and stop the sending of gradients themselves.

Here a worker's connection begins with its startup program and sends as its mode says; what is left to do by hand is to
send what is kept back, at ``stop``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.runtime import sessions

if TYPE_CHECKING:
    from typing import Any

    from fleet_mpi.program.graph.program import Program


class Communicator:
    """Takes the argument lists of all versions; the worker's program says what is sent."""

    def __init__(self, program: Program | None = None, mode: Any = None, kwargs: Any = None, envs: Any = None,
                 **others: Any) -> None:
        self._runs = False

    def init_with_ctx(self, send_ctx: Any = None, recv_ctx: Any = None, *others: Any) -> None:
        """No effect: the worker's program says what goes where."""

    def start(self) -> None:
        """Note that gradients may be sent; they are from the first step of a connected worker on."""
        self._runs = True

    def stop(self) -> None:
        """Send what is kept back, and take the parameters it leads to."""
        session = sessions.session_of(global_scope())
        if self._runs and session is not None and not session.is_over:
            session.flush()
        self._runs = False

    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._runs

