"""DistributeTranspiler: splits a training program into a worker's and the servers' programs.

Takes every option and all argument forms of the original. The worker's programs are the given ones, changed in
place. Which process runs which program is known when it runs; until then nothing is started.
"""

from __future__ import annotations

import functools
from numbers import Integral
from typing import TYPE_CHECKING

from fleet_mpi import notices, settings
from fleet_mpi.errors import UnknownName, UsageError, nearest
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.ranks import cluster
from fleet_mpi.transpile.collective_modes import transpile_for_workers
from fleet_mpi.transpile.distributing import distribute, rewrite
from fleet_mpi.transpile.print_log import log_placement, log_server, logged_ops
from fleet_mpi.transpile.server_program import server_program, server_startup

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fleet_mpi.program.graph.program import Program

DEFAULTS = dict(
    slice_var_up=True, split_method=None, min_block_size=8192, enable_dc_asgd=False, mode="pserver",
    print_log=False, wait_port=True, runtime_split_send_recv=False, sync_mode=True, half_async=False,
    completely_not_async=False, geo_sgd_mode=False, geo_sgd_need_push_nums=100, nccl_comm_num=1,
    use_hierarchical_allreduce=False, hierarchical_allreduce_inter_nranks=0, collective_mode=None,
    # Ours: how delay compensation is weighed and bounded, and how many steps workers may be apart (None: no bound).
    dc_asgd_lambda=1.0, dc_asgd_adaptive=False, dc_asgd_bound=1.0, staleness=None)


_SMALLEST_BLOCK = 8192  # the original's; smaller messages cost more than they balance


class DistributeTranspilerConfig:
    """The options of a transpiler; unknown ones are refused."""

    def __init__(self) -> None:
        self.__dict__.update(DEFAULTS)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in DEFAULTS:
            raise UnknownName(f"DistributeTranspilerConfig has no option {name!r}; {nearest(name, DEFAULTS)}")
        if name in ("sync_mode", "runtime_split_send_recv") and value is None:
            raise UsageError(f"{name}: expected True or False, got None")
        if name == "mode" and value not in ("pserver", "nccl2", "collective"):
            raise UsageError(f"mode: expected pserver, nccl2 or collective, got {value!r}")
        if name == "min_block_size" and not (isinstance(value, Integral) and value >= _SMALLEST_BLOCK):
            raise UsageError(f"min_block_size: expected a whole number, at least {_SMALLEST_BLOCK}, got {value!r}")
        self.__dict__[name] = value


class ServerRuntimeConfig:
    """Thread numbers of the original's servers, as the environment has them; over MPI they mean nothing."""

    def __init__(self) -> None:
        self._rpc_send_thread_num = settings.get("FLAGS_rpc_send_thread_num")
        self._rpc_get_thread_num = settings.get("FLAGS_rpc_get_thread_num")
        self._rpc_prefetch_thread_num = settings.get("FLAGS_rpc_prefetch_thread_num")


# The argument list of ``transpile`` before 0.13.
OLDEST_FORM = ("optimize_ops", "params_grads", "trainer_id", "program", "pservers", "trainers", "split_method",
               "sync_mode")


def also_in_the_oldest_form(transpile: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``transpile`` be called with what ``minimize`` returned first, as before 0.13."""
    @functools.wraps(transpile)
    def call(self, *args, **kwargs):
        if not (args and isinstance(args[0], list) or "optimize_ops" in kwargs):
            return transpile(self, *args, **kwargs)
        given = {**dict(zip(OLDEST_FORM, args)), **kwargs}
        given.pop("optimize_ops")
        if not isinstance(given.pop("params_grads", None), list):
            raise UsageError("transpile(optimize_ops, params_grads, ...): the second argument must be the list that "
                             "minimize returned")
        self.config.split_method = given.pop("split_method", self.config.split_method)
        return transpile(self, **{"trainer_id": None, **given})
    return call


class DistributeTranspiler:
    """Holds a job's description from ``transpile`` on and hands out each role's program."""

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        self.config = config if config is not None else DistributeTranspilerConfig()
        self.origin_program = None
        # What scripts read after transpiling for servers.
        self.has_distributed_lookup_table, self.table_name, self.vars_overview = False, None, None

    @also_in_the_oldest_form
    def transpile(self, trainer_id: int | None = None, program: Program | None = None, pservers: str = "127.0.0.1:6174",
                  trainers: int | str = 1, sync_mode: bool = True, startup_program: Program | None = None,
                  current_endpoint: str = "127.0.0.1:6174") -> None:
        """Describe the job; ``trainers`` is a number, or in nccl2 mode the workers' endpoints as a text.

        The oldest form, ``transpile(optimize_ops, params_grads, [trainer_id,] pservers=, trainers=)``, is
        understood too; without a trainer_id workers are numbered by their rank.
        """
        self.trainer_id = trainer_id or 0
        self.origin_program = program or default_main_program()
        self.startup_program = startup_program or default_startup_program()
        has_servers = self.config.mode == "pserver"
        self.trainers = len(trainers.split(",")) if isinstance(trainers, str) and not has_servers else trainers
        self.pserver_endpoints = [one.strip() for one in pservers.split(",")] if isinstance(pservers, str) else []
        self.trainer_num, self.sync_mode = self.trainers, sync_mode and self.config.sync_mode
        self.current_endpoint = current_endpoint
        cluster.share_seed()
        with logged_ops(self.config.print_log and notices.speaks_for_job(), self.origin_program, self.startup_program):
            if has_servers:
                self._transpile_for_servers(trainer_id, sync_mode)
            else:
                transpile_for_workers(self.config, self.origin_program, self.startup_program, trainers, trainer_id,
                                      current_endpoint)

    def _transpile_for_servers(self, trainer_id, sync_mode):
        _check_job(self.pserver_endpoints, self.trainers, trainer_id)
        self.distribution, self.updates = distribute(
            self.origin_program, self.startup_program, self.config, self.pserver_endpoints, self.trainers, trainer_id,
            sync_mode)
        log_placement(self.config, self.distribution)
        rewrite(self.origin_program, self.startup_program, self.distribution)
        self.vars_overview = self.origin_program._parameters_on_pservers
        self.table_name = self.origin_program._distributed_lookup_table
        self.has_distributed_lookup_table = self.table_name is not None
        self.origin_program._ps_endpoint = self.current_endpoint

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """The worker's program: the one given to ``transpile``."""
        self._require_transpiled()
        return self.origin_program

    def get_pserver_program(self, endpoint: str) -> Program:
        """The program of the server with this label; running it serves until the workers have left."""
        index = self._server(endpoint)
        made = server_program(self.distribution, index, self.updates, endpoint)
        log_server(self.config, made, index)
        return made

    def get_pserver_programs(self, endpoint: str) -> tuple[Program, Program]:
        """(program, startup program) of the server with this label."""
        return self.get_pserver_program(endpoint), self.get_startup_program(endpoint)

    def get_startup_program(self, endpoint: str, pserver_program: Program | None = None,
                            startup_program: Program | None = None) -> Program:
        """The startup program of the server with this label."""
        return server_startup(self.distribution, self._server(endpoint))

    def _server(self, endpoint):
        self._require_transpiled()
        if self.config.mode != "pserver":
            raise UsageError(f"mode {self.config.mode!r} has no servers: all processes run get_trainer_program()")
        if endpoint not in self.pserver_endpoints:
            raise UsageError(f"no server has the label {endpoint!r}; {nearest(endpoint, self.pserver_endpoints)}")
        return self.pserver_endpoints.index(endpoint)

    def _require_transpiled(self):
        if self.origin_program is None:
            raise UsageError("call transpile(...) first")


class GeoSgdTranspiler(DistributeTranspiler):
    """A transpiler for workers that train by themselves and exchange what they moved."""

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        super().__init__(config)
        self.config.geo_sgd_mode, self.config.sync_mode = True, False
        self.config.runtime_split_send_recv = True


def _check_job(endpoints, trainers, trainer_id):
    if not endpoints or not all(endpoints):
        raise UsageError(f"pservers: expected 'host:port' texts separated by commas, got {endpoints}")
    if len(set(endpoints)) != len(endpoints):
        raise UsageError(f"pservers: the same endpoint twice: {endpoints}")
    if not isinstance(trainers, int) or isinstance(trainers, bool) or trainers < 1:
        raise UsageError(f"trainers: expected a whole number from 1 up, got {trainers!r}")
    if trainer_id is not None and int(trainer_id) < 0:  # servers have any number; a worker's is checked when it joins
        raise UsageError(f"trainer_id: expected a number from 0 up, got {trainer_id!r}")
