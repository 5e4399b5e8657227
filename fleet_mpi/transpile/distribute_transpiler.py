"""DistributeTranspiler: splits a training program into a worker's and the servers' programs.

Today it takes and checks every option and both argument forms; a job of one worker needs no change of its
program: it keeps its parameters itself. Programs for servers and for several workers are not built yet and
are refused.
"""

import functools

from fleet_mpi import notices
from fleet_mpi.errors import NotBuilt, UnknownName, UsageError, nearest
from fleet_mpi.program.program import default_main_program, default_startup_program

DEFAULTS = dict(
    slice_var_up=True, split_method=None, min_block_size=8192, enable_dc_asgd=False, mode="pserver",
    print_log=False, wait_port=True, runtime_split_send_recv=False, sync_mode=True, half_async=False,
    completely_not_async=False, geo_sgd_mode=False, geo_sgd_need_push_nums=100, nccl_comm_num=1,
    use_hierarchical_allreduce=False, hierarchical_allreduce_inter_nranks=0, collective_mode=None)


class DistributeTranspilerConfig:
    """The options of a transpiler; unknown ones are refused."""

    def __init__(self):
        self.__dict__.update(DEFAULTS)

    def __setattr__(self, name, value):
        if name not in DEFAULTS:
            raise UnknownName(f"DistributeTranspilerConfig has no option {name!r}; {nearest(name, DEFAULTS)}")
        if name in ("sync_mode", "runtime_split_send_recv") and value is None:
            raise UsageError(f"{name}: expected True or False, got None")
        if name == "mode" and value not in ("pserver", "nccl2", "collective"):
            raise UsageError(f"mode: expected pserver, nccl2 or collective, got {value!r}")
        self.__dict__[name] = value


class ServerRuntimeConfig:
    """Thread numbers of the original's servers; over MPI they mean nothing."""

    def __init__(self):
        self._rpc_send_thread_num = 12
        self._rpc_get_thread_num = 12
        self._rpc_prefetch_thread_num = 12


# The argument list of ``transpile`` before 0.13.
OLDEST_FORM = ("optimize_ops", "params_grads", "trainer_id", "program", "pservers", "trainers", "split_method",
               "sync_mode")


def also_in_the_oldest_form(transpile):
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
        return transpile(self, **given)
    return call


class DistributeTranspiler:
    """Holds a job's description from ``transpile`` on and hands out each role's program."""

    def __init__(self, config=None):
        self.config = config if config is not None else DistributeTranspilerConfig()
        if self.config.min_block_size < 8192:
            raise UsageError(f"min_block_size: at least 8192, got {self.config.min_block_size}")
        self.origin_program = None

    @also_in_the_oldest_form
    def transpile(self, trainer_id=0, program=None, pservers="127.0.0.1:6174", trainers=1, sync_mode=True,
                  startup_program=None, current_endpoint="127.0.0.1:6174"):
        """Describe the job; ``trainers`` is a number, or in nccl2 mode the workers' endpoints as a text.

        The oldest form, ``transpile(optimize_ops, params_grads, [trainer_id,] pservers=, trainers=)``, is
        understood too.
        """
        self.trainer_id = trainer_id
        self.origin_program = program or default_main_program()
        self.startup_program = startup_program or default_startup_program()
        self.trainers = len(trainers.split(",")) if isinstance(trainers, str) else trainers
        self.pserver_endpoints = pservers.split(",") if isinstance(pservers, str) else []
        self.sync_mode = sync_mode and self.config.sync_mode
        self.current_endpoint = current_endpoint
        if self.sync_mode and self.config.enable_dc_asgd:
            raise UsageError("enable_dc_asgd corrects asynchronous training: set sync_mode = False with it")

    def get_trainer_program(self, wait_port=True):
        """The worker's program."""
        self._require_transpiled()
        if self.trainers > 1:
            raise _not_built(self)
        if self.config.mode == "pserver":
            notices.once("embedded", f"DistributeTranspiler: one worker keeps its parameters itself; the "
                                     f"{len(self.pserver_endpoints)} server(s) of this job have nothing to do")
        return self.origin_program

    def get_pserver_program(self, endpoint):
        """The program of the server with this label."""
        self._require_transpiled()
        raise _not_built(self)

    def get_pserver_programs(self, endpoint):
        """(program, startup program) of the server with this label."""
        self._require_transpiled()
        raise _not_built(self)

    def get_startup_program(self, endpoint, pserver_program=None, startup_program=None):
        """The startup program of the server with this label."""
        self._require_transpiled()
        raise _not_built(self)

    def _require_transpiled(self):
        if self.origin_program is None:
            raise UsageError("call transpile(...) first")


def _not_built(transpiler):
    return NotBuilt(f"DistributeTranspiler: a job of {transpiler.trainers} worker(s) and "
                    f"{len(transpiler.pserver_endpoints)} server(s) in mode {transpiler.config.mode!r}: programs for "
                    f"several processes are not built yet")
