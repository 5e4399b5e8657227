"""fleet_mpi/program/optimizers/wrappers.py."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.clip import ClipByGlobalNorm
from fleet_mpi.program.build.initializers import NumpyArray
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.build.regularizers import L2Decay
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.nn import batch_norm
from fleet_mpi.program.optimizers.plain import SGD, Momentum
from fleet_mpi.program.optimizers.wrappers import GradientMergeOptimizer, LookaheadOptimizer, RecomputeOptimizer
from tests.unit.program.building import add, apply, data, from_scratch, mean, mul, parameter

rng = np.random.default_rng(0)
BATCHES = rng.normal(size=(12, 4, 2)).astype("float32")


def line():
    """mean(x * w + b)."""
    return mean(add(mul(data("x", [-1, 2]), parameter("w", [1, 2])), parameter("b", [0.5, 0])))


def weights_after(make, batches, build=line):
    """w after every batch."""
    with from_scratch():
        make().minimize(build())
        executor, found = Executor(), []
        executor.run(default_startup_program())
        for batch in batches:
            executor.run(feed={"x": batch})
            found.append(global_scope().array("w").copy())
    return found


def test_merged_gradients_are_applied_at_every_kth_step():
    found = weights_after(lambda: GradientMergeOptimizer(Momentum(0.1, 0.9), k_steps=3), BATCHES)
    want = weights_after(lambda: Momentum(0.1, 0.9), BATCHES.reshape(4, 12, 2))
    for step in range(12):
        expected = [1, 2] if step < 2 else want[(step + 1) // 3 - 1]
        np.testing.assert_allclose(found[step], expected, rtol=1e-5, err_msg=f"step {step}")


def test_merged_gradients_can_be_summed_instead():
    found = weights_after(lambda: GradientMergeOptimizer(SGD(0.1), k_steps=3, avg=False), BATCHES[:3])
    want = np.array([1, 2]) - 0.1 * BATCHES[:3].sum((0, 1)) / 8
    np.testing.assert_allclose(found[-1], want, rtol=1e-5)


def test_clip_and_decay_see_the_merged_gradient():
    def optimizer():
        return SGD(0.1, regularization=L2Decay(0.2), grad_clip=ClipByGlobalNorm(0.05))
    found = weights_after(lambda: GradientMergeOptimizer(optimizer(), k_steps=2), BATCHES[:4])
    np.testing.assert_array_equal(found[0], [1, 2])
    np.testing.assert_allclose(found[1::2], weights_after(optimizer, BATCHES[:4].reshape(2, 8, 2)), rtol=1e-5)


def test_one_step_is_the_wrapped_optimizer_alone():
    ops, _ = GradientMergeOptimizer(SGD(0.1), k_steps=1).minimize(line())
    assert [op.type for op in ops] == ["sgd", "sgd"]


def test_minimize_of_merged_gradients_returns_the_conditional_op_and_the_pairs():
    ops, pairs = GradientMergeOptimizer(SGD(0.1), k_steps=2).minimize(line())
    assert [op.type for op in ops] == ["conditional_block"]
    assert [grad.name for _, grad in pairs] == ["w@GRAD", "b@GRAD"]
    names = default_main_program().global_block().vars
    assert names["w@GRAD@GradientMerge"].persistable


def test_row_gradients_cannot_be_merged():
    grad = default_main_program().global_block().create_var(name="g", shape=[2], type=VarType.SELECTED_ROWS)
    with pytest.raises(UsageError, match="'w' has a row gradient"):
        GradientMergeOptimizer(SGD(0.1), k_steps=2).apply_gradients([(parameter("w", [1, 2]), grad)])


def chain():
    """Eight layers of tanh(x * w + x); every second one is a checkpoint."""
    value, weight = data("x", [-1, 2]), parameter("w", [0.3, -0.2])
    layers = []
    for _ in range(8):
        value = apply("tanh", {"X": add(mul(value, weight), value)})
        layers.append(value)
    chain.checkpoints = layers[1::2]
    return mean(value)


def recomputing(optimizer):
    optimizer = RecomputeOptimizer(optimizer)
    optimizer._set_checkpoints(chain.checkpoints)
    return optimizer


class Late:
    """An optimizer that is made when the network is there: the checkpoints are its variables."""

    def minimize(self, loss):
        return recomputing(Momentum(0.5, 0.9)).minimize(loss)


def test_recomputing_gives_the_same_bits():
    plainly = weights_after(lambda: Momentum(0.5, 0.9), BATCHES, chain)
    again = weights_after(Late, BATCHES, chain)
    np.testing.assert_array_equal(plainly, again)
    assert abs(plainly[-1] - [0.3, -0.2]).max() > 1e-3


@pytest.mark.parametrize("kept", ["what it reads", "what it gives"])
def test_a_recomputed_batch_norm_moves_its_averages_once(kept):
    def trained(recompute):
        with from_scratch():
            default_startup_program().random_seed = 1
            hidden = fc(data("x", [-1, 2]), 3)
            normal = batch_norm(hidden, act="relu", moving_mean_name="moving")
            made_by_norm = default_main_program().global_block().ops[-2].output("Y")[0]
            optimizer = RecomputeOptimizer(Momentum(0.5, 0.9)) if recompute else Momentum(0.5, 0.9)
            if recompute:
                optimizer._set_checkpoints([hidden if kept == "what it reads" else made_by_norm])
            optimizer.minimize(mean(mul(normal, normal)))
            executor = Executor()
            executor.run(default_startup_program())
            return [executor.run(feed={"x": batch}, fetch_list=["moving", "fc_0.w_0"]) for batch in BATCHES[:3]]

    for plain, again in zip(trained(False), trained(True)):
        np.testing.assert_array_equal(plain[0], again[0])
        np.testing.assert_array_equal(plain[1], again[1])


def most_alive(make):
    """The largest number of temporaries of the network's size that are alive at the same time."""
    with from_scratch():
        make().minimize(chain())
        ops = default_main_program().global_block().ops
        born, dies = {}, {}
        for i, op in enumerate(ops):
            for name in op.output_arg_names:
                born.setdefault(name, i)
            for name in op.input_arg_names:
                dies[name] = i
        big = [name for name in born if default_main_program().global_block().var(name).shape == (-1, 2)]
        return max(sum(born[name] <= i <= dies.get(name, -1) for name in big) for i in range(len(ops)))


def test_recomputing_keeps_fewer_variables_alive():
    assert most_alive(Late) < 0.75 * most_alive(lambda: SGD(0.1))


def test_recomputing_needs_checkpoints():
    optimizer = RecomputeOptimizer(SGD(0.1))
    with pytest.raises(UsageError, match="_set_checkpoints"):
        optimizer.minimize(line())
    with pytest.raises(UsageError, match="a list of variables"):
        optimizer._set_checkpoints("x")


def test_lookahead_steps_back_every_k_steps():
    def build():
        weight = LayerHelper("line").create_parameter(ParamAttr("w", NumpyArray([1.0, 2.0])), [2])
        return mean(mul(data("x", [-1, 2]), weight))
    found = weights_after(lambda: LookaheadOptimizer(SGD(0.1), alpha=0.25, k=2), BATCHES[:4], build)
    fast = slow = np.array([1.0, 2.0])
    for step, batch in enumerate(BATCHES[:4]):
        fast = fast - 0.1 * batch.sum(0) / 8
        if step % 2:
            fast = slow = slow + 0.25 * (fast - slow)
        np.testing.assert_allclose(found[step], fast, rtol=1e-5)


@pytest.mark.parametrize("make", [lambda: GradientMergeOptimizer(SGD(0.1), k_steps=0),
                                  lambda: LookaheadOptimizer(SGD(0.1), alpha=2.0),
                                  lambda: LookaheadOptimizer(SGD(0.1), k=0)])
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(UsageError):
        make()


def test_a_wrapper_answers_for_the_wrapped_optimizer():
    assert RecomputeOptimizer(SGD(0.125)).get_lr() == 0.125
