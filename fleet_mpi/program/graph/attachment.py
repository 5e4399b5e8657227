"""A program's part in a job: the one thing that rooms above leave on a Program.

A program is data and knows no run-time. ``connect`` and ``disconnect`` name who does their work (``runners``); the
other fields are facts, most of which scripts read under the original's names.
"""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Attachment:
    """What a program is in its job; the default is that of a program that belongs to none."""

    # Called with the scope and the module that computes (numpy, cupy) when a plan is made, before its ops are bound:
    # connects it to the other ranks. What it returns is called before each run of the plan; None: nothing is. What that
    # returns, if anything, is called behind the run's last op, before its results are waited for.
    connect: Callable[[Any, Any], Callable[[], Callable[[], None] | None] | None] | None = None
    # Called with the scope when an executor that ran this very program, not a copy, is closed.
    disconnect: Callable[[Any], None] | None = None
    for_training: bool = False             # copies that do not train are connected to nobody
    # {variable: the type of an op without inputs that makes it} of what a run makes only where it is fetched: such ops
    # are not among the ops that scripts see.
    made_when_fetched: dict[str, str] = dataclasses.field(default_factory=dict)
    distribution: Any = None               # how it is spread over servers
    server: int | None = None              # the number of the server whose program it is
    is_distributed: bool = False
    is_chief: bool = False
    endpoints: list = dataclasses.field(default_factory=list)
    ps_endpoint: str | None = None
    distributed_lookup_table: str | None = None
    parameters_on_pservers: Any = None

    def of_copy(self) -> "Attachment":
        """That of a copy of the program."""
        return dataclasses.replace(self, disconnect=None)

    def without_training(self) -> "Attachment":
        """That of a program whose ops no longer train: one worker may run it alone."""
        return dataclasses.replace(self, made_when_fetched={}, connect=None if self.for_training else self.connect)


def shown(name: str) -> property:
    """The attribute of a Program that shows this field of its attachment, under the original's name."""
    def get(program):
        return getattr(program.attachment, name)

    def put(program, value):
        program.attachment = dataclasses.replace(program.attachment, **{name: value})
    return property(get, put, doc=f"``{name}`` of the attachment.")
