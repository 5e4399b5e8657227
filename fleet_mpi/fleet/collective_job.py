"""A job without servers: from a minimised program and a strategy to what every worker runs and saves."""

import fleet_mpi.collective_ops  # noqa: F401  (enters the ops that a worker's program has)
from fleet_mpi import notices
from fleet_mpi.checkpoint.inference_model import save_inference_model
from fleet_mpi.checkpoint.variables import save_persistables
from fleet_mpi.fleet import collective_strategy, strategy
from fleet_mpi.transpile.collective import Options, plan_of, rewrite


def options_of(chosen):
    """How gradients travel, as a strategy of 1.x or 2.x (or None) says."""
    if isinstance(chosen, strategy.DistributedStrategy):
        fuses = chosen.fuse_all_reduce_ops
        return Options(fuse_mb=chosen.fuse_grad_size_in_MB if fuses else 0,
                       last_mb=chosen.last_comm_group_size_MB if fuses else 0, comms=chosen.nccl_comm_num,
                       by_node=chosen.use_hierarchical_allreduce,
                       node_ranks=chosen.hierarchical_allreduce_inter_nranks if
                       chosen.hierarchical_allreduce_inter_nranks > 1 else 0, half=chosen.fp16_allreduce)
    if isinstance(chosen, collective_strategy.DistributedStrategy):
        return Options(comms=chosen.nccl_comm_num)
    return Options()


class CollectiveJob:
    """One program trained by all workers together."""

    def __init__(self, role, program, startup, chosen):
        self.role = role
        self.plan = plan_of(program, role.worker_num(), role.worker_index(), options_of(chosen))
        rewrite(program, startup, self.plan)
        self.main, self.startup = program, startup

    def init_worker(self):
        """Nothing: workers meet when they run the startup program."""
        _say("init_worker")

    def init_server(self, model_dir=None):
        """Nothing: there are no servers."""
        _say("init_server")

    def run_server(self):
        """Nothing: there are no servers."""
        _say("run_server")

    def stop_worker(self):
        """Nothing: workers end by themselves."""
        _say("stop_worker")

    def save_persistables(self, dirname, program, filename=None):
        """Worker 0 saves: all have the same values."""
        if self.role.is_first_worker():
            save_persistables(None, dirname, program, filename)
        self.role.barrier_worker()

    def save_inference_model(self, dirname, feeded_var_names, target_vars, program):
        """Worker 0 saves: all have the same values."""
        if self.role.is_first_worker():
            save_inference_model(dirname, feeded_var_names, target_vars, None, program)
        self.role.barrier_worker()
        return [var.name for var in target_vars]


def _say(call):
    notices.once(f"collective {call}", f"fleet.{call}: a collective job has no servers, so there is nothing to do")
