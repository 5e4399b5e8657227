"""A cell trained without servers the way scripts do it, for mpirun: ``python collective_flows.py FLOW CELL``.

Every worker prints its parameters' digest, worker 0 that of the whole state. Unlike in together.py the ranks join by
themselves: numbers, random streams, communicators and the goodbye come from there.
"""

import sys

import fleet_mpi.fluid as fluid
from fleet_mpi.fluid.incubate.fleet.collective import DistributedStrategy, fleet as fleet1
from fleet_mpi.paddle.distributed import fleet as fleet2
from fleet_mpi.ranks import cluster
from tests.exact.averaging import digest
from tests.exact.cells import CELLS, built, feed_of


def train(cell, main, startup, loss, persistable, trained, scheduler=None):
    """This worker's steps, and what it has come to."""
    executor, worker = fluid.Executor(), None
    executor.run(startup)
    worker = cluster.current().index
    program = getattr(main, "program", main)
    for step in range(cell.steps):
        executor.run(main, feed=feed_of(program, worker, step), fetch_list=[loss])
        if scheduler is not None:
            scheduler.step()
    scope = fluid.global_scope()
    state = {name: scope.array(name) for name in persistable if scope.array(name) is not None}
    sys.stdout.write(f"parameters {digest({name: scope.array(name) for name in trained})}\n")
    if worker == 0:
        sys.stdout.write(f"state {digest(state)}\n")


def kept(program):
    """(names of the persistable variables, names of the trained ones)."""
    return ({var.name for var in program.list_vars() if var.persistable},
            {param.name for param in program.all_parameters() if param.trainable})


def with_fleet(cell, fleet, strategy, **init):
    """A fleet's way, 1.x or 2.x."""
    fleet.init(**init)
    loss, learn = cell.build(), cell.learn()
    fleet.distributed_optimizer(learn, strategy).minimize(loss)
    train(cell, fleet.main_program, fleet.startup_program, loss, *kept(fleet._origin_program))


def nccl2(cell):
    """Seed 004's way: who one is, is known from the job's description."""
    made, world = built(cell), cluster.world()
    names = kept(made.main)
    config = fluid.DistributeTranspilerConfig()
    config.mode = "nccl2"
    endpoints = [f"127.0.0.1:{6170 + rank}" for rank in range(world.size)]
    job = fluid.DistributeTranspiler(config)
    job.transpile(world.rank, trainers=",".join(endpoints), current_endpoint=endpoints[world.rank])
    train(cell, made.main, made.startup, made.loss, *names, scheduler=made.scheduler)


def two():
    """A 2.x strategy: small buckets over two communicators."""
    made = fleet2.DistributedStrategy()
    made.fuse_grad_size_in_MB, made.nccl_comm_num = 1, 2
    return made


FLOWS = {
    "fleet 2.x": lambda cell: with_fleet(cell, fleet2, two(), is_collective=True),
    "fleet 1.x": lambda cell: with_fleet(cell, fleet1, DistributedStrategy()),
    "nccl2": nccl2,
}

if __name__ == "__main__":
    FLOWS[sys.argv[1]](CELLS[sys.argv[2]])
