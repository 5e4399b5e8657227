"""Distribution: everything a job's processes must agree on, as plain data. Made from a program by ``reading``."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from fleet_mpi import __version__
from fleet_mpi.modes.base import Mode
from fleet_mpi.parameter_server import agreement
from fleet_mpi.parameter_server.tables.base import KEYS, SCORES, UPDATES
from fleet_mpi.program.graph.runners import Runner
from fleet_mpi.transpile.mode_choice import COMMUNICATOR
from fleet_mpi.transpile.ops import backward_digest
from fleet_mpi.wire import protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

    from fleet_mpi.parameter_server.description import LoadedFrom
    from fleet_mpi.parameter_server.recipes import Recipe
    from fleet_mpi.placement.placing import Placement
    from fleet_mpi.program.engine.scope import Scope
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.transpile.growing import TableForAnyId

_connect, _disconnect = (Runner("fleet_mpi.runtime.sessions", name) for name in ("connect", "disconnect"))
_load_rest = Runner("fleet_mpi.checkpoint.loading", "load_rest")


@dataclasses.dataclass
class Distribution:
    """One training program spread over workers and servers."""

    placement: Placement              # of the dense variables
    row_placement: Placement          # of the variables that travel by rows
    recipes: dict[str, Recipe]        # of all of them
    gradients: dict[str, str]         # {variable: name of its gradient}
    fed_rates: tuple[str, ...]        # learning rates that workers set
    rate_dtypes: dict[str, Any]       # of all rates
    rate_program: Program | None      # computes the other rates and moves schedules on; None where nothing does
    mode: Mode
    options: dict[str, Any]           # of the mode
    endpoints: list[str]              # the servers' labels
    workers: int
    worker: int | None = None         # this worker's number; None: by rank order
    startup_source: Program = None    # the untouched startup program: initial values of everything
    origin: Program = None            # the untouched training program: what is saved and loaded
    program: Program | None = None    # the worker's: what ``origin`` was made
    loaded_from: LoadedFrom | None = None   # servers: what the values of their scopes come from, if any
    growing: dict[str, TableForAnyId] = dataclasses.field(default_factory=dict)   # tables with a row for any id

    def connect(self, scope: Scope, xp: ModuleType) -> Callable[[], None] | None:
        """Of the attachment of a worker's programs: plans are made in a scope that is connected to the servers."""
        return _connect(self, scope).move_to(xp)

    def disconnect(self, scope: Scope) -> None:
        """Of the attachment of a worker's program: who closes what it trained with says goodbye."""
        _disconnect(self, scope)

    def load_rest(self, told: LoadedFrom, scope: Scope) -> None:
        """After a worker's first pull: take what it keeps itself from where the servers loaded theirs, as ``told``."""
        _load_rest(self, told, scope)

    @property
    def tables(self) -> list[str]:
        """The names of the variables that travel by rows, those that grow last."""
        return [*(one.name for one in self.row_placement.variables), *self.growing]

    @property
    def keeps_states(self) -> bool:
        """Whether servers have the optimizers; in geo training the workers do, and servers only add."""
        return self.mode.servers_update

    @property
    def sent_rates(self) -> tuple[str, ...]:
        """The learning rates that a worker hands over at each step; in geo training those of its own rows."""
        of_rows = sorted({self.recipes[name].rate for name in self.growing})
        return self.fed_rates if self.keeps_states else tuple(of_rows)

    @property
    def handed_over(self) -> list[str]:
        """The variables whose updates are not the worker's program's: all, in geo training those that grow."""
        return list(self.recipes if self.keeps_states else self.growing)

    def states_of(self, variable: str) -> Sequence[tuple[str, str]]:
        """(the rule's state, the program's variable) pairs, by name, that servers keep with a variable."""
        states = self.recipes[variable].states
        return states if self.keeps_states else [pair for pair in states if pair[0] in (KEYS, SCORES, UPDATES)]

    def counters(self) -> list[str]:
        """What schedules keep from step to step: variables that the rate program reads and writes."""
        if self.rate_program is None:
            return []
        block = self.rate_program.global_block()
        ops, kept = block.ops, {name for name, var in block.vars.items() if var.persistable}
        written = kept.intersection(name for op in ops for name in op.output_arg_names)
        return sorted(written.intersection(name for op in ops for name in op.input_arg_names) - set(self.rate_dtypes))

    def _shared_options(self):
        """Without those that mean something to a worker only: FLAGS_communicator_* need not be set for servers."""
        return {name: value for name, value in self.options.items() if name not in COMMUNICATOR}

    def fingerprint(self) -> dict[str, Any]:
        """What is compared between ranks: texts and numbers by name, so that a difference can be named."""
        shards = {}
        for shard in (*self.placement.shards, *self.row_placement.shards):
            shards.setdefault(shard.variable, []).append(f"{shard.size} from {shard.offset} on server {shard.server}")
        return agreement.compact({
            "fleet_mpi": __version__, "protocol": protocol.VERSION, "workers": self.workers,
            "servers": len(self.endpoints), "mode": self.mode.name,
            "mode options": json.dumps(self._shared_options(), sort_keys=True, default=str),
            "variable": _described(self.placement), "table": _described(self.row_placement) | {
                name: f"{one.dtype} rows of {one.width} for any id, from {list(one.init)}, {one.keeping}"
                for name, one in self.growing.items()},
            "update": {name: _text(recipe) for name, recipe in self.recipes.items()},
            "cut": {name: ", ".join(parts) for name, parts in shards.items()},
            "rates": [str(name) for name in self.fed_rates], "backward pass": backward_digest(self.origin)})


def _described(placement):
    return {one.name: f"{one.dtype} {list(one.shape)}" for one in placement.variables}


def _text(recipe):
    hypers = ", ".join(f"{name}={value!r}" for name, value in recipe.hypers)
    steps = "".join(f"{step}, then " for step in recipe.steps)
    return f"{steps}{recipe.rule}({hypers}) at {recipe.rate} with {dict(recipe.states)}"
