"""A cell trained the way scripts do it, for mpirun: ``python flows.py FLOW CELL``. Worker 0 prints the state's digest.

Unlike in spread.py the ranks join by themselves: roles, numbers of random streams and the goodbye come from there.
"""

import sys

import numpy as np

import fleet_mpi.fluid as fluid
from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet as fleet1
from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory
from fleet_mpi.paddle.distributed import fleet as fleet2
from fleet_mpi.ranks import cluster
from fleet_mpi.runtime import sessions
from tests.exact.averaging import digest
from tests.exact.cells import CELLS, built, feed_of
from tests.exact.spread import state_of


def train(cell, made, main):
    """The steps of this worker."""
    executor, worker = fluid.Executor(), cluster.current().index
    for step in range(cell.steps):
        if cell.has_data(worker, step):
            executor.run(main, feed=feed_of(main, worker, step), fetch_list=[made.loss])
            if made.scheduler is not None:
                made.scheduler.step()


def tell(persistable):
    """What the job has come to, from worker 0."""
    session = sessions.session_of(fluid.global_scope())
    if session.connection.cluster.index == 0:
        print("state", len(session.connection.cluster.workers), digest(state_of(session, persistable)), flush=True)


def transpiler(cell):
    """Seed 004's way: the first rank serves; who one is, is known when programs are asked for."""
    made = built(cell)
    persistable = {var.name for var in made.main.list_vars() if var.persistable}
    world = cluster.world()
    endpoints = ["10.0.0.1:6174"]
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = False
    job = fluid.DistributeTranspiler(config)
    job.transpile(max(0, world.rank - 1), pservers=endpoints[0], trainers=world.size - 1)
    executor = fluid.Executor()
    if world.rank == 0:
        main, startup = job.get_pserver_programs(endpoints[0])
        executor.run(startup)
        executor.run(main)
        return
    main = job.get_trainer_program()
    executor.run(fluid.default_startup_program())
    train(cell, made, main)
    tell(persistable)


def with_fleet(cell, fleet, strategy, connects_first):
    """A fleet's way, 1.x or 2.x."""
    fleet.init()
    loss, learn = cell.build(), cell.learn()
    fleet.distributed_optimizer(learn, strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    persistable = {var.name for var in fleet._origin_program.list_vars() if var.persistable}
    made = type("Made", (), {"loss": loss, "scheduler": None})
    if connects_first:
        fleet.init_worker()
    fluid.Executor().run(fluid.default_startup_program())
    if not connects_first:
        fleet.init_worker()
    train(cell, made, fluid.default_main_program())
    tell(persistable)
    check_util()
    fleet.stop_worker()


def check_util():
    """Metrics are over all workers."""
    if fleet2._role_maker is None:
        return
    mine, count = fleet2.worker_index(), fleet2.worker_num()
    every = np.arange(count)
    assert fleet2.metrics.sum(np.array([mine])).tolist() == [every.sum()]
    assert fleet2.metrics.max(np.array([mine])).tolist() == [count - 1]
    assert fleet2.metrics.acc(np.array([mine]), np.array([2.0])) == every.sum() / (2.0 * count)
    assert fleet2.util.all_gather(mine) == every.tolist()
    # Worker 0 has all positives, the others all negatives, in a lower bucket: a perfect order, if seen together.
    positives, negatives = np.array([[0, 0, mine == 0]]), np.array([[mine != 0, 0, 0]])
    assert fleet2.metrics.auc(positives.astype("int64"), negatives.astype("int64")) == (1.0 if count > 1 else 0.5)


def synchronous():
    """A 2.x strategy without a_sync."""
    made = fleet2.DistributedStrategy()
    made.a_sync = False
    return made


FLOWS = {
    "transpiler": transpiler,
    "fleet 1.x": lambda cell: with_fleet(cell, fleet1, None, True),
    "SyncStrategy": lambda cell: with_fleet(cell, fleet1, StrategyFactory.create_sync_strategy(), True),
    "fleet 2.x": lambda cell: with_fleet(cell, fleet2, synchronous(), False),
}

if __name__ == "__main__":
    FLOWS[sys.argv[1]](CELLS[sys.argv[2]])
