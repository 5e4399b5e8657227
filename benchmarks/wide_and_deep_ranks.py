"""The ranks of ``benchmarks.wide_and_deep``: rank 0 serves, the others train in turns by it and alone.

Rank 1, the first worker, prints what was measured as JSON, or why the mode was refused.
"""

import json
import os
import sys
import time
from types import SimpleNamespace

import numpy as np

from benchmarks import inputs, mpi_ranks, ours
from fleet_mpi import fluid, paddle
from fleet_mpi.errors import FleetError
from fleet_mpi.examples import training, wide_and_deep as example
from fleet_mpi.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
from fleet_mpi.kernels.threads import set_threads
from fleet_mpi.paddle.distributed import fleet
from fleet_mpi.ranks import cluster

RATE = 0.1
STALENESS = 2   # no mode that is measured asks for it


def main(mode, options):
    """Serve, or measure and print."""
    os.environ["FLEET_MPI_SERVERS"] = "1"
    set_threads(1)
    paddle.enable_static()
    fleet.init(PaddleCloudRoleMaker())
    comm = cluster.world().comm.Dup()
    processes = comm.allgather(os.getpid())
    workers = comm.Split(int(fleet.is_server()))
    try:
        loss = declare(mode, options["k_steps"])
    except FleetError as error:
        found = {"refused": str(error)}
    else:
        if fleet.is_server():
            fleet.init_server()
            fleet.run_server()
            return
        feeds = feeds_of(options["batch"], fleet.worker_index())
        found = measured({"by server": by_server(loss, feeds), "alone": alone(feeds)}, workers, processes, mode,
                         options)
        fleet.stop_worker()
    if comm.rank == 1:
        print(json.dumps(found), flush=True)


def declare(mode, k_steps):
    """Build the distributed program; returns its loss. FleetError where the mode does not take growing tables."""
    options = SimpleNamespace(mode=mode, k_steps=k_steps, staleness=STALENESS)
    loss = network()
    fleet.distributed_optimizer(fluid.optimizer.SGD(RATE), training.strategy_for(options)).minimize(loss)
    return loss


def network():
    """The loss of the model, in the default program."""
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 1
    return example.network(table_rows=None, with_metrics=False).loss


def by_server(loss, feeds):
    """A step of the distributed program."""
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fleet.init_worker()
    return ours.step_of(lambda feed: exe.run(feed=feed, fetch_list=[loss]), feeds)


def alone(feeds):
    """A step of the same model that exchanges nothing: a scope and a table of its own."""
    return ours.Training(network, fluid.optimizer.SGD(RATE), feeds, {}).step


def feeds_of(batch, worker):
    """A worker's batches: ids of about a million different texts, hashed to below 10^10."""
    rng = np.random.default_rng([6, worker])
    batches = [(rng.random((batch, inputs.FEATURES), np.float32), ids_of(rng.integers(0, inputs.TABLE[0], (
        batch, inputs.SLOTS))), (rng.random((batch, 1)) < 0.3).astype(np.int64)) for _ in range(inputs.BATCHES)]
    return [ours.clicks_feed(*one) for one in batches]


def ids_of(texts):
    """An id below 10^10 for each of some numbers below a million, all different."""
    return texts * (example.ANY_ID // inputs.TABLE[0])


def measured(ways, workers, processes, mode, options):
    """Seconds and CPU seconds (by rank) of a step, of each way and round; ways take turns."""
    seconds, cpu_s, first_loss = ({way: [] for way in ways} for _ in range(3))
    for way, step in ways.items():
        first_loss[way] = step()
    steps = steps_of_a_round(ways, workers, mode, options)
    for _ in range(options["rounds"]):
        for way, step in ways.items():
            mpi_ranks.quiet_barrier(workers)
            used, began = mpi_ranks.cpu_s(processes), time.perf_counter()
            for _ in range(steps):
                step()
            mpi_ranks.quiet_barrier(workers)
            seconds[way].append((time.perf_counter() - began) / steps)
            cpu_s[way].append(((mpi_ranks.cpu_s(processes) - used) / steps).tolist())
    return {"seconds": seconds, "cpu_s": cpu_s, "first_loss": first_loss, "steps": steps}


def steps_of_a_round(ways, workers, mode, options):
    """As many as fill it, the same on both workers and for both ways; geo's are whole exchanges."""
    unit = options["k_steps"] if mode == "geo" else 1
    for step in ways.values():
        began = time.perf_counter()
        for _ in range(max(unit, inputs.BATCHES)):   # afterwards every row is there
            step()
    limit_s = (time.perf_counter() - began) / max(unit, inputs.BATCHES)
    wanted = max(1, round(options["round_s"] / limit_s / unit)) * unit
    return workers.bcast(wanted)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
