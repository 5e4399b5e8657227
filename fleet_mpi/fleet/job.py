"""A parameter-server job of one fleet: from a minimised program to what this process runs, saves and ends with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet_mpi import arrays, notices
from fleet_mpi.checkpoint.loading import load_all
from fleet_mpi.checkpoint.saving import author_here, save_all, save_model
from fleet_mpi.checkpoint.sources import Source
from fleet_mpi.checkpoint.values.servers import ServerValues, connected
from fleet_mpi.checkpoint.variables import choose, is_persistable
from fleet_mpi.connections import members
from fleet_mpi.errors import UsageError
from fleet_mpi.fleet import strategy, transpiler_strategies
from fleet_mpi.parameter_server.description import param
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.runtime import sessions
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig
from fleet_mpi.transpile.distributing import distribute, rewrite
from fleet_mpi.transpile.mode_choice import COMMUNICATOR
from fleet_mpi.transpile.print_log import log_placement, log_server, logged_ops
from fleet_mpi.transpile.server_program import server_program, server_startup

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fleet_mpi.fleet.roles import RoleMaker
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.program.graph.variable import Variable


def config_of(chosen: Any) -> tuple[DistributeTranspilerConfig, Any]:
    """(DistributeTranspilerConfig, communicator's options) that a strategy of 1.x or 2.x means."""
    if isinstance(chosen, strategy.DistributedStrategy):
        return _from_switches(chosen)
    if isinstance(chosen, transpiler_strategies.DistributedStrategy):
        runtime = chosen.get_trainer_runtime_config()
        return chosen.get_program_config(), {name: getattr(runtime, name) for name in COMMUNICATOR}
    return chosen if isinstance(chosen, DistributeTranspilerConfig) else DistributeTranspilerConfig(), None


def _from_switches(chosen: Any) -> tuple[DistributeTranspilerConfig, dict[str, Any]]:
    """``a_sync`` and ``k_steps`` of 2.x: synchronous, asynchronous, or geo."""
    config, told = DistributeTranspilerConfig(), chosen.a_sync_configs
    steps = told["k_steps"]
    if not chosen.a_sync and steps > 0:
        raise UsageError(f"DistributedStrategy: k_steps = {steps} means geo, which is asynchronous: set a_sync = True")
    if chosen.a_sync:
        config.sync_mode, config.runtime_split_send_recv = False, True
        config.geo_sgd_mode = steps > 0
        if steps > 0:
            config.geo_sgd_need_push_nums = steps
    # What is left as it was may come from the environment.
    return config, {name: told[name] for name in COMMUNICATOR
                    if name in told and told[name] != strategy.CONFIGS["a_sync_configs"][name]}


class Job:
    """One program spread over this fleet's processes. ``connects_at_start``: the startup program pulls (1.x)."""

    def __init__(self, role: RoleMaker, program: Program, startup: Program, chosen: Any,
                 connects_at_start: bool) -> None:
        config, communicator = config_of(chosen)
        self.origin = program.clone()
        self.role, self.connects_at_start = role, connects_at_start
        self.endpoints = role.get_pserver_endpoints()
        self.distribution, updates = distribute(
            program, startup, config, self.endpoints, role.worker_num(), role.worker_index() if role.is_worker() else
            None, communicator=communicator)
        log_placement(config, self.distribution)
        if role.is_server():
            index = role.server_index()
            self.main = server_program(self.distribution, index, updates, self.endpoints[index])
            self.startup = server_startup(self.distribution, index)
            log_server(config, self.main, index)
        else:
            with logged_ops(config.print_log and role.is_first_worker(), program, startup):
                rewrite(program, startup, self.distribution, connects_at_start)
            self.main, self.startup = program, startup

    # ------------------------------------------------------------------ a worker's life

    def init_worker(self) -> None:
        """Connect; in 2.x worker 0's values become everybody's, unless the servers loaded theirs.

        Once connected, a further call does nothing; after stop_worker it is refused.
        """
        self._require("init_worker", self.role.is_worker())
        known = sessions.session_of(global_scope())
        session = sessions.connect(self.distribution, global_scope())
        if session.is_over:
            raise UsageError("init_worker: this worker has said goodbye to the servers of this program (stop_worker)")
        if session is not known and not self.connects_at_start:
            if not session.loaded_from:
                self._spread_first_values(session)
            self.role.barrier_worker()
            session.pull()

    def _spread_first_values(self, session: Any) -> None:
        """Let servers and workers have what worker 0 has: parameters there, all else that persists here."""
        scope, state = global_scope(), ServerState(session.client)
        kept = state.inventory.by_program_name(self.distribution.counters())
        if self.role.is_first_worker() and session.has_started:
            for variable in self.distribution.placement.variables:
                state.store(param(variable.name), arrays.to_host(scope.array(variable.name)))
        for name in sorted(choose(self.origin, None, is_persistable)):
            if name not in kept:
                mine = scope.array(name)
                is_sent = self.role.is_first_worker() and mine is not None
                value = self.role._all_gather(arrays.to_host(mine) if is_sent else None)[0]
                if value is not None and mine is not None:
                    mine[...] = arrays.to_module(value, arrays.module_of(mine))  # it may lie on a device

    def shrink(self, threshold: int) -> int:
        """Let the servers forget rows that no push had since the ``threshold``-th call from here; returns how many
        went.

        Worker 0 does it, and blocks until it is done; the others need not call it, and return 0.
        """
        self._require("shrink", self.role.is_worker())
        if not self.role.is_first_worker():
            return 0
        state = ServerState(connected("shrink").client)
        return sum(state.shrink(table, "unseen", threshold) for table in self.distribution.growing)

    def stop_worker(self) -> None:
        """Flush and say goodbye."""
        self._require("stop_worker", self.role.is_worker())
        session = sessions.session_of(global_scope())
        if session is not None:
            session.finish()

    # ------------------------------------------------------------------ saving

    def save_persistables(self, dirname: str, program: Program, filename: str | None = None) -> None:
        """Save the untranspiled program's variables as one process would."""
        save_all(self._values("save_persistables", program), dirname, filename, self.main, author_here())

    def save_inference_model(self, dirname: str, feeded_var_names: Sequence[str], target_vars: Sequence[Variable],
                             program: Program) -> Any:
        """Save what leads from the fed variables to the targets."""
        return save_model(self._values("save_inference_model", program), dirname, feeded_var_names, target_vars)

    def _values(self, what: str, program: Program) -> ServerValues:
        """The values of a program's variables, on the servers and here."""
        self._require(what, self.role.is_worker())
        return ServerValues(ServerState(connected(what).client), self.distribution, program)

    # ------------------------------------------------------------------ a server's life

    def init_server(self, model_dir: str | None = None) -> None:
        """First values: drawn, or from a folder."""
        self._require("init_server", self.role.is_server())
        members.announce()
        Executor().run(self.startup)
        if model_dir:
            if not os.path.isdir(model_dir):
                raise UsageError(f"init_server: no folder {str(model_dir)!r} to load from")
            load_all(Source(model_dir), self.main)

    def run_server(self) -> None:
        """Serve until the workers have left."""
        self._require("run_server", self.role.is_server())
        Executor().run(self.main)
        notices.log().info("server %d: all workers have left", self.role.server_index())

    def _require(self, call: str, is_mine: bool) -> None:
        if not is_mine:
            raise UsageError(f"{call}: this process is a {'worker' if self.role.is_worker() else 'server'}; ask "
                             f"fleet.is_worker() or fleet.is_server() first")
