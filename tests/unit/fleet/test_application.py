"""What each strategy makes of an optimizer, in one process."""

import numpy as np
import pytest

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.fleet import application, collective_strategy
from fleet_mpi.fleet.strategy import DistributedStrategy
from fleet_mpi.fleet.without_effect import REFUSED
from fleet_mpi.program.build.amp import OptimizerWithMixedPrecision
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import Program, default_main_program, default_startup_program, program_guard
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.optimizers import paddle2
from fleet_mpi.program.optimizers.plain import SGD, Adam, Lamb, LarsMomentum, Momentum
from fleet_mpi.program.optimizers.wrappers import GradientMergeOptimizer, RecomputeOptimizer


def strategy(**switches):
    """A 2.x strategy with these switches and settings."""
    made = DistributedStrategy()
    for name, value in switches.items():
        setattr(made, name, value)
    return made


def test_a_default_strategy_leaves_the_optimizer_alone():
    optimizer = SGD(0.1)
    assert application.applied(optimizer, strategy()) is optimizer
    assert application.applied(optimizer, None) is optimizer


@pytest.mark.parametrize("switch", sorted(REFUSED))
def test_what_is_not_built_is_refused_by_name(switch):
    with pytest.raises(NotBuilt, match=f"DistributedStrategy: {switch} not built"):
        application.applied(SGD(0.1), strategy(**{switch: True}))


@pytest.mark.parametrize("make", (Momentum, paddle2.Momentum))
def test_lars_takes_the_place_of_momentum(make):
    found = application.applied(make(0.1, 0.8), strategy(
        lars=True, lars_configs={"lars_coeff": 0.5, "epsilon": 0.25, "exclude_from_weight_decay": ["norm"]}))
    assert type(found) is LarsMomentum and found.learning_rate.given == 0.1
    assert (found.hypers["mu"], found.hypers["lars_coeff"], found.hypers["epsilon"]) == (0.8, 0.5, 0.25)
    assert found._excluded == ["norm"]


def test_lamb_takes_the_place_of_adam():
    found = application.applied(Adam(0.1, beta1=0.8), strategy(
        lamb=True, lamb_configs={"lamb_weight_decay": 0.5, "exclude_from_weight_decay": ["bias"]}))
    assert type(found) is Lamb and (found.hypers["beta1"], found.hypers["weight_decay"]) == (0.8, 0.5)


@pytest.mark.parametrize("switch", ("lars", "lamb"))
def test_lars_and_lamb_pass_over_other_optimizers(switch):
    optimizer = SGD(0.1)
    assert application.applied(optimizer, strategy(**{switch: True})) is optimizer


def test_switches_wrap_each_other():
    found = application.applied(SGD(0.1), strategy(
        amp=True, amp_configs={"init_loss_scaling": 128.0, "custom_black_list": ["softmax"]}, recompute=True,
        recompute_configs={"checkpoints": ["a"]}, gradient_merge=True,
        gradient_merge_configs={"k_steps": 4, "avg": False}))
    assert type(found) is GradientMergeOptimizer and (found.k_steps, found.avg) == (4, False)
    assert type(found.inner_optimizer) is OptimizerWithMixedPrecision
    assert found.inner_optimizer._init_loss_scaling == 128.0
    assert found.inner_optimizer._amp_lists.black_list >= {"softmax"}
    assert type(found.inner_optimizer.inner_optimizer) is RecomputeOptimizer


def test_recomputing_without_checkpoints_is_refused():
    with pytest.raises(UsageError, match="recomputing needs the list of checkpoints"):
        application.applied(SGD(0.1), strategy(recompute=True))
    old = collective_strategy.DistributedStrategy()
    old.forward_recompute = True
    with pytest.raises(UsageError, match="recomputing needs the list of checkpoints"):
        application.applied(SGD(0.1), old)


def test_options_of_the_1x_collective_strategy_wrap_too():
    old = collective_strategy.DistributedStrategy()
    old.use_amp, old.amp_loss_scaling = True, 64
    old.forward_recompute, old.recompute_checkpoints = True, ["a"]
    found = application.applied(SGD(0.1), old)
    assert type(found) is OptimizerWithMixedPrecision and found._init_loss_scaling == 64
    assert type(found.inner_optimizer) is RecomputeOptimizer
    old.use_dist_fc = True
    with pytest.raises(NotBuilt, match="use_dist_fc"):
        application.applied(SGD(0.1), old)


@pytest.mark.parametrize("switches", (
    dict(amp=True), dict(gradient_merge=True, gradient_merge_configs={"k_steps": 2}),
    dict(lars=True), dict(localsgd=True, dgc=True, fp16_allreduce=True)), ids=lambda one: "+".join(one))
def test_a_network_trains_with_the_switch(loss, train, switches):
    application.applied(Momentum(0.1, 0.9), strategy(**switches)).minimize(loss)
    losses = train(default_main_program(), default_startup_program(), loss, steps=6)
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


def test_recomputing_needs_less_memory():
    sizes = []
    for checkpoints in ([], [3, 7, 11]):
        main, startup = Program(), Program()
        with program_guard(main, startup), unique_name.guard():
            layers = [data("x", [256])]
            for _ in range(16):
                layers.append(fc(layers[-1], 256, act="tanh"))
            application.applied(Momentum(0.1, 0.9), strategy(
                recompute=bool(checkpoints), recompute_configs={"checkpoints": [layers[i] for i in checkpoints]})
            ).minimize(mean(layers[-1]))
        executor = Executor()
        executor.run(startup)
        executor.run(main, feed={"x": np.ones((1024, 256), "float32")})
        sizes.append(executor.compiled(main, global_scope()).arena._bytes.nbytes)
    assert sizes[1] < 0.7 * sizes[0]
