"""The transpiler's modes without servers, ``nccl2`` and ``collective``: from its arguments to a worker's programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.collective.choosing import Options
from fleet_mpi.errors import UnknownName, UsageError, nearest
from fleet_mpi.transpile import collective
from fleet_mpi.transpile.ops import communicating

if TYPE_CHECKING:
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.transpile.collective import CollectivePlan
    from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig

COLLECTIVE_MODES = ("grad_allreduce", "local_sgd")


def transpile_for_workers(config: DistributeTranspilerConfig, program: Program, startup: Program, trainers: int | str,
                          trainer_id: int, current_endpoint: str) -> CollectivePlan | None:
    """The plan of this worker, and its programs changed in place; None where it is the only worker."""
    endpoints = _endpoints(trainers)
    worker = _worker(endpoints, trainer_id, current_endpoint, config.mode)
    if len(endpoints) == 1:
        return None
    options = Options(comms=config.nccl_comm_num, by_node=config.use_hierarchical_allreduce,
                                 node_ranks=config.hierarchical_allreduce_inter_nranks)
    how = config.collective_mode or "grad_allreduce"
    if how not in COLLECTIVE_MODES:
        raise UnknownName(f"collective_mode {how!r}: {nearest(how, COLLECTIVE_MODES)}")
    plan = collective.plan_of(program, len(endpoints), worker, options)
    if how == "local_sgd":
        collective.rewrite_for_local_sgd(program, startup, plan)
    else:
        collective.rewrite(program, startup, plan)
    _show_communicators(startup, config, endpoints, worker)
    return plan


def _endpoints(trainers):
    if isinstance(trainers, int):
        return [f"worker{number}" for number in range(trainers)]
    if not isinstance(trainers, str) or not all(one.strip() for one in trainers.split(",")):
        raise UsageError(f"trainers: without servers expected the workers' endpoints, 'host:port,host:port', got "
                         f"{trainers!r}")
    endpoints = [one.strip() for one in trainers.split(",")]
    if len(set(endpoints)) != len(endpoints):
        raise UsageError(f"trainers: the same endpoint twice: {trainers}")
    return endpoints


def _worker(endpoints, trainer_id, current_endpoint, mode):
    """This worker's number; None: by rank order."""
    if mode == "collective":
        if len(endpoints) < 2:
            raise UsageError(f"trainers: mode collective needs two workers or more, got {endpoints}")
        if current_endpoint not in endpoints:
            raise UsageError(f"current_endpoint {current_endpoint!r} is not one of the workers' {endpoints}")
    if trainer_id is not None and not 0 <= int(trainer_id) < len(endpoints):
        raise UsageError(f"trainer_id: expected a number below {len(endpoints)}, got {trainer_id!r}")
    return None if trainer_id is None else int(trainer_id)


def _show_communicators(startup, config, endpoints, worker):
    """The ops by which the original makes its communicators; here they come from MPI."""
    block, others = startup.global_block(), [one for number, one in enumerate(endpoints) if number != worker]
    attrs = {"endpoint": endpoints[worker or 0], "trainers": endpoints, "trainer_id": worker or 0,
             "nccl_comm_num": config.nccl_comm_num}
    if config.mode == "nccl2":
        ops = [communicating(block, "gen_nccl_id", {}, {}, attrs)]
    else:
        ops = [communicating(block, kind, {}, {}, {"ring_id": ring, "rank": worker or 0, "nranks": len(endpoints),
                                                   "other_endpoints": others})
               for ring in range(config.nccl_comm_num) for kind in ("c_gen_nccl_id", "c_comm_init")]
    block.ops = ops + block.ops
    startup.touch()
