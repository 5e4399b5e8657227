"""A job without servers: from a minimised program and a strategy to what every worker runs and saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi import notices
from fleet_mpi.checkpoint.saving import author_here, save_all, save_model
from fleet_mpi.checkpoint.values import ScopeValues
from fleet_mpi.collective.choosing import Options
from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.fleet import collective_strategy, strategy
from fleet_mpi.program.engine.compiled import GradientScaleStrategy
from fleet_mpi.program.graph.sync_batch_norm import has_marked, synchronise_batch_norm
from fleet_mpi.transpile.collective import plan_of, rewrite, rewrite_for_local_sgd
from fleet_mpi.transpile.collective_modes import COLLECTIVE_MODES
from fleet_mpi.transpile.local_sgd import Schedule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fleet_mpi.fleet.roles import RoleMaker
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.program.graph.variable import Variable
    from fleet_mpi.transpile.collective import CollectivePlan


def options_of(chosen: Any) -> Options:
    """How gradients travel, as a strategy of 1.x or 2.x (or None) says."""
    made = _travelling(chosen)
    if synchronises(chosen):
        # As in the original: batch norms wait for all workers anyway.
        made.comms, made.by_node = 1, False
    if made.half and made.by_node:
        notices.once("half by node",
                     "DistributedStrategy.use_hierarchical_allreduce is not applied: with fp16_allreduce "
                                     "sums are rounded once, not within each node too")
        made.by_node = False
    return made


def _travelling(chosen: Any) -> Options:
    if isinstance(chosen, strategy.DistributedStrategy):
        fuses = chosen.fuse_all_reduce_ops
        return Options(fuse_mb=chosen.fuse_grad_size_in_MB if fuses else 0,
                       last_mb=chosen.last_comm_group_size_MB if fuses else 0, comms=chosen.nccl_comm_num,
                       by_node=chosen.use_hierarchical_allreduce,
                       node_ranks=chosen.hierarchical_allreduce_inter_nranks if
                       chosen.hierarchical_allreduce_inter_nranks > 1 else 0, half=chosen.fp16_allreduce,
                       mean=_is_mean(chosen.gradient_scale_configs["scale_strategy"], ("avg", "sum")))
    if isinstance(chosen, collective_strategy.DistributedStrategy):
        kinds = GradientScaleStrategy.CoeffNumDevice, GradientScaleStrategy.One
        return Options(comms=chosen.nccl_comm_num, mean=_is_mean(chosen.gradient_scale_strategy, kinds))
    return Options()


def _is_mean(told: Any, kinds: Sequence[Any]) -> bool:
    """Whether gradients are averaged, the first of the kinds, or added up, the second."""
    if told not in kinds:
        raise NotBuilt(f"DistributedStrategy: gradients scaled by {told!r} is not built; expected one of {list(kinds)}")
    return told == kinds[0]


def synchronises(chosen: Any) -> bool:
    """Whether batch norms see all workers' batches."""
    if isinstance(chosen, strategy.DistributedStrategy):
        return chosen.sync_batch_norm or chosen.build_strategy.sync_batch_norm
    return isinstance(chosen, collective_strategy.DistributedStrategy) and chosen.sync_batch_norm


def schedule_of(chosen: Any) -> Schedule | None:
    """When parameters are averaged instead of gradients; None: never."""
    if isinstance(chosen, strategy.DistributedStrategy):
        if chosen.adaptive_localsgd:
            told = chosen.adaptive_localsgd_configs
            return Schedule(told["init_k_steps"], told["begin_step"], adapts=True)
        return Schedule(*map(chosen.localsgd_configs.get, ("k_steps", "begin_step"))) if chosen.localsgd else None
    if isinstance(chosen, collective_strategy.DistributedStrategy):
        return _schedule_of_1x(chosen)
    return None


def _schedule_of_1x(chosen: Any) -> Schedule | None:
    if chosen.collective_mode not in (None, *COLLECTIVE_MODES):
        raise UsageError(f"DistributedStrategy.collective_mode: expected {' or '.join(COLLECTIVE_MODES)}, got "
                         f"{chosen.collective_mode!r}")
    is_local = chosen.collective_mode == "local_sgd"
    if is_local and chosen.mode != "collective" and not chosen.use_local_sgd:
        raise UsageError("DistributedStrategy: collective_mode local_sgd needs mode collective (or use_local_sgd)")
    return Schedule() if is_local or chosen.use_local_sgd else None


def rewrite_for(program: Program, startup: Program, plan: CollectivePlan, chosen: Any) -> None:
    """Make programs those of one worker among others, as a strategy says."""
    if synchronises(chosen) or has_marked(program):
        count = synchronise_batch_norm(program, marked_only=not synchronises(chosen))
        plan.strategy["sync_batch_norm"] = f"{count} batch norms over all workers"
    schedule = schedule_of(chosen)
    if schedule is None:
        rewrite(program, startup, plan)
    else:
        rewrite_for_local_sgd(program, startup, plan, schedule)


class CollectiveJob:
    """One program trained by all workers together."""

    def __init__(self, role: RoleMaker, program: Program, startup: Program, chosen: Any) -> None:
        self.role = role
        self.plan = plan_of(program, role.worker_num(), role.worker_index(), options_of(chosen))
        rewrite_for(program, startup, self.plan, chosen)
        self.main, self.startup = program, startup

    def init_worker(self) -> None:
        """Nothing: workers meet when they run the startup program."""
        _say("init_worker")

    def init_server(self, model_dir: str | None = None) -> None:
        """Nothing: there are no servers."""
        _say("init_server")

    def run_server(self) -> None:
        """Nothing: there are no servers."""
        _say("run_server")

    def stop_worker(self) -> None:
        """Nothing: workers end by themselves."""
        _say("stop_worker")

    def save_persistables(self, dirname: str, program: Program, filename: str | None = None) -> None:
        """Save this worker's values: all have the same, but for batch norms' statistics and between averagings."""
        save_all(ScopeValues(program), dirname, filename, self.main, author_here())

    def save_inference_model(self, dirname: str, feeded_var_names: Sequence[str], target_vars: Sequence[Variable],
                             program: Program) -> Any:
        """Save what leads from the fed variables to the targets, with this worker's values."""
        return save_model(ScopeValues(program), dirname, feeded_var_names, target_vars)


def _say(call: str) -> None:
    notices.once(f"collective {call}", f"fleet.{call}: a collective job has no servers, so there is nothing to do")
