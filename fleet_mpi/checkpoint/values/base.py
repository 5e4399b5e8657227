"""The seam between a save and the place that values come from."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from fleet_mpi.checkpoint.folders.transaction import Save
from fleet_mpi.checkpoint.variables import Predicate
from fleet_mpi.program.graph.program import Program
from fleet_mpi.program.graph.variable import Variable


class Values(Protocol):
    """The values of one program. ``program`` is the untranspiled one: its names and shapes are what files have.

    What ``choose`` gives by name is for ``at_one_moment`` and ``add`` of the same Values: each kind has its own.
    """

    program: Program

    def choose(self, vars: Iterable[Variable | str] | None = None,
               predicate: Predicate | None = None) -> dict[str, Any]:
        """The variables meant, by name and in name order: those listed, or those for which the predicate holds."""
        ...

    def at_one_moment(self, chosen: dict[str, Any]) -> AbstractContextManager[None]:
        """What is added of these variables within the block is of one moment."""
        ...

    def add(self, save: Save, chosen: dict[str, Any], filename: str | None = None) -> None:
        """Let a save have the values of variables, in the format that ``filename`` means."""
        ...
