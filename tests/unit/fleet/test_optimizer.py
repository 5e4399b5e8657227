"""What ``distributed_optimizer`` returns is the optimizer, with a strategy."""

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.facade import CollectiveFleet, TranspilerFleet
from fleet_mpi.fleet.optimizer import FP16AllReduceOptimizer
from fleet_mpi.fleet.transpiler_strategies import StrategyFactory
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.optimizers.plain import SGD
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig
from tests.exact.collective_networks import batches, line
from tests.exact.collective_workers import build, same, strategy, train as train_workers


def test_what_it_does_not_know_is_asked_of_the_optimizer_inside(loss):
    fleet = CollectiveFleet()
    fleet.init()
    optimizer = fleet.distributed_optimizer(SGD(0.25))
    assert optimizer.get_lr() == 0.25
    pairs = optimizer.backward(loss)
    assert len(pairs) == 2 and optimizer.apply_gradients(pairs)


def test_among_others_updates_come_from_minimize_only(loss, monkeypatch):
    fleet = CollectiveFleet()
    fleet.init()
    optimizer = fleet.distributed_optimizer(SGD(0.25))
    pairs = optimizer.backward(loss)
    monkeypatch.setattr(fleet, "is_alone", lambda: False)
    with pytest.raises(UsageError, match="apply_gradients: each worker would update its own parameters"):
        optimizer.apply_gradients(pairs)


def test_float16_gradients_change_nothing_for_one_worker(loss, train):
    FP16AllReduceOptimizer(SGD(0.1)).minimize(loss)
    assert "cast" not in [op.type for op in default_main_program().global_block().ops]
    losses = train(default_main_program(), default_startup_program(), loss)
    assert losses[-1] < losses[0]


def test_float16_gradients_travel_by_the_optimizer_too():
    jobs = [build(line, FP16AllReduceOptimizer(SGD(0.1)), None, 2),
            build(line, SGD(0.1), strategy(fp16_allreduce=True), 2)]
    assert all(job.plan.options.half for job in jobs)
    assert same(*(train_workers(job, batches(2, 2))[0][0].values(job) for job in jobs))


@pytest.mark.parametrize("mode", ("nccl2", "collective"))
@pytest.mark.parametrize("by_strategy", (False, True))
def test_a_mode_without_servers_is_refused_by_the_fleet_that_has_them(mode, by_strategy):
    config, fleet = DistributeTranspilerConfig(), TranspilerFleet()
    config.mode = mode
    fleet.init()
    strategy = StrategyFactory.create_sync_strategy()
    strategy.set_program_config(config)
    with pytest.raises(UsageError, match=f"mode = '{mode}' means training without servers.*fleet.collective"):
        fleet.distributed_optimizer(SGD(0.1), strategy if by_strategy else config)
