"""fleet_mpi/program/optimizers/plain.py, paddle2.py and compressed.py: several steps against plain loops."""

import inspect

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.clip import ClipByNorm, ClipByValue, set_gradient_clip
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.regularizers import L1Decay, L2Decay
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.math import matmul_v2
from fleet_mpi.program.layers.reduction import reduce_sum
from fleet_mpi.program.layers.tensor import create_parameter
from fleet_mpi.program.optimizers import compressed, paddle2, plain
from fleet_mpi.program.optimizers.base import persistable
from fleet_mpi.update_rules import RULES
from tests.unit.program import update_formulas
from tests.unit.program.building import data, from_scratch, parameter

RATE, STEPS = 0.1, 4
rng = np.random.default_rng(0)
START = rng.normal(size=(6, 3)).astype("float32")
GRADS = [rng.normal(size=(6, 3)).astype("float32") for _ in range(STEPS)]
IDS = np.array([4, 1, 4])  # the same row twice

# Class, its arguments besides the rate, what the formula is called with.
OPTIMIZERS = [
    ("SGD", {}, {}),
    ("Momentum", {"momentum": 0.8}, {"mu": 0.8}),
    ("Momentum", {"momentum": 0.8, "use_nesterov": True}, {"mu": 0.8, "use_nesterov": True}),
    ("LarsMomentum", {"momentum": 0.8}, {"mu": 0.8}),
    ("Adagrad", {"initial_accumulator_value": 0.5}, {}),
    ("DecayedAdagrad", {"decay": 0.7}, {"decay": 0.7}),
    ("Adam", {"beta1": 0.8}, {"beta1": 0.8}),
    ("Adam", {"lazy_mode": True}, {}),
    ("AdamW", {"weight_decay": 0.05}, {"coeff": 0.05}),
    ("Adamax", {}, {}),
    ("Adadelta", {"rho": 0.9}, {"rho": 0.9}),
    ("RMSProp", {"rho": 0.9, "momentum": 0.4}, {"rho": 0.9, "momentum": 0.4}),
    ("RMSProp", {"centered": True}, {"centered": True}),
    ("Ftrl", {"l1": 0.01, "l2": 0.02}, {"l1": 0.01, "l2": 0.02}),
    ("Lamb", {"lamb_weight_decay": 0.02}, {"weight_decay": 0.02}),
]
NAMES = [f"{name}{arguments or ''}" for name, arguments, _ in OPTIMIZERS]


def train(make, is_sparse=False):
    """The parameter after every step on GRADS (or on their first rows, at IDS), in programs of its own."""
    with from_scratch():
        return train_here(make(), is_sparse)


def train_here(optimizer, is_sparse):
    param = parameter("w", START)
    if is_sparse:
        grad = default_main_program().global_block().create_var(name="g", shape=[6, 3], type=VarType.SELECTED_ROWS)
        rows = global_scope().var("g").value = Rows(IDS, np.empty((3, 3), "float32"), 6)
    else:
        grad = data("g", [6, 3])
    optimizer.apply_gradients([(param, grad)])
    executor, found = Executor(), []
    executor.run(default_startup_program())
    for grad in GRADS:
        if is_sparse:
            rows.values[:] = grad[:3]
        executor.run(feed={} if is_sparse else {"g": grad})
        found.append(global_scope().array("w").copy())
    return found


def loop(name, arguments, hypers, is_sparse=False):
    """The same in float64; rows that a row gradient leaves out stay where the rule says so."""
    rule = RULES[getattr(plain, name).type]
    keeps_rows = rule.untouched_rows == "stay" or arguments.get("lazy_mode")
    p = START.astype(float)
    states = {state.slot: np.full(p.shape if state.like_param else (1,), first_value(state, arguments), float)
              for state in rule.states}
    found = []
    for grad in GRADS:
        g = grad.astype(float)
        if is_sparse:
            g = np.zeros_like(p)
            np.add.at(g, IDS, grad[:3].astype(float))
        before = {"": p, **states}
        p = getattr(update_formulas, rule.name)(p, g, RATE, states, **hypers)
        if is_sparse and keeps_rows:
            untouched = np.setdiff1d(np.arange(6), IDS)
            p[untouched] = before[""][untouched]
            for slot, value in states.items():
                if value.shape == p.shape:
                    value[untouched] = before[slot][untouched]
        found.append(p.copy())
    return found


def first_value(state, arguments):
    if not isinstance(state.initial, str):
        return state.initial
    return arguments.get(state.initial, {"beta1": 0.9, "beta2": 0.999}.get(state.initial))


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "rows"])
@pytest.mark.parametrize("name, arguments, hypers", OPTIMIZERS, ids=NAMES)
def test_several_steps_equal_a_plain_loop(name, arguments, hypers, is_sparse):
    found = train(lambda: getattr(plain, name)(RATE, **arguments), is_sparse)
    for got, want in zip(found, loop(name, arguments, hypers, is_sparse), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-6)
    assert abs(found[0] - START).max() > 1e-5


@pytest.mark.parametrize("name", sorted({name for name, *_ in OPTIMIZERS}))
def test_the_suffix_optimizer_is_another_name_for_the_same(name):
    assert getattr(plain, name + "Optimizer") is getattr(plain, name)


@pytest.mark.parametrize("name", ["SGD", "Momentum", "Adagrad", "Adam", "AdamW", "Adamax", "Adadelta", "RMSProp",
                                  "Lamb"])
def test_the_2x_class_does_the_same_with_other_arguments(name):
    old, new = getattr(plain, name), getattr(paddle2, name)
    assert issubclass(new, old)
    assert {"parameters", "grad_clip", "name"} <= set(inspect.signature(new).parameters)
    more = {"momentum": 0.9} if name == "Momentum" else {}
    np.testing.assert_array_equal(train(lambda: old(RATE, **more)), train(lambda: new(RATE, parameters=None, **more)))


def test_a_number_as_weight_decay_is_l2():
    decayed, plainly = paddle2.SGD(weight_decay=0.5), paddle2.SGD(weight_decay=L1Decay(0.5))
    assert isinstance(decayed.regularization, L2Decay) and decayed.regularization.regularization_coeff == 0.5
    assert isinstance(plainly.regularization, L1Decay)
    with pytest.raises(UsageError, match="weight_decay"):
        paddle2.SGD(weight_decay="0.5")


def test_momentum_of_2x_folds_l2_decay_into_its_op_with_equal_bits():
    def apart():
        return plain.Momentum(RATE, 0.9, regularization=L2Decay(0.3))

    def folded():
        return paddle2.Momentum(RATE, 0.9, weight_decay=0.3)
    for make in (apart, folded):
        make().apply_gradients([(parameter("w", START), data("g", [6, 3]))])
    assert [op.type for op in default_main_program().global_block().ops] == ["scale", "sum", "momentum", "momentum"]
    np.testing.assert_array_equal(train(apart), train(folded))


def test_names_can_be_excused_from_decay():
    for optimizer, attribute, plain_value in (
            (plain.Lamb(exclude_from_weight_decay_fn=lambda param: param.name == "b"), "weight_decay", 0.01),
            (plain.AdamW(apply_decay_param_fun=lambda name: name != "b"), "coeff", 0.01),
            (plain.LarsMomentum(0.1, 0.9, exclude_from_weight_decay=["b"]), "lars_weight_decay", 0.0005)):
        pairs = [(parameter(name, START), data("g", [6, 3])) for name in ("w", "b")]
        b, w = optimizer.apply_gradients(pairs)[:2]
        assert (b.attr(attribute), w.attr(attribute)) == (0.0, plain_value)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "rows"])
@pytest.mark.parametrize("name, setting, value, more", (
    ("Adam", "beta1", 0.9, {}), ("Adam", "beta2", 0.999, {}), ("Adam", "epsilon", 0.01, {}), ("Lamb", "beta1", 0.9, {}),
    ("Momentum", "momentum", 0.8, {}), ("RMSProp", "rho", 0.9, {"momentum": 0.4})))
def test_a_setting_may_be_a_variable(name, setting, value, more, is_sparse):
    def by_variable():
        return getattr(plain, name)(RATE, **more, **{setting: persistable(setting, [1], "float32", value)})
    found = train(by_variable, is_sparse)
    numbers = train(lambda: getattr(plain, name)(RATE, **more, **{setting: value}), is_sparse)
    for got, want in zip(found, numbers, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_a_setting_that_is_a_variable_is_read_at_every_step():
    grad = data("g", [6, 3])
    optimizer = plain.Momentum(RATE, persistable("mu", [1], "float32", 0.0))
    op, = optimizer.apply_gradients([(parameter("w", START), grad)])
    assert op.input("MuTensor") == ["mu"]
    executor, want, velocity = Executor(), START.astype(float), 0.0
    executor.run(default_startup_program())
    for mu, now in zip((0.5, 0.9, 0.0, 0.3), GRADS, strict=True):
        global_scope().array("mu")[:] = mu
        executor.run(feed={"g": now})
        velocity = mu * velocity + now.astype(float)
        want = want - RATE * velocity
        np.testing.assert_allclose(global_scope().array("w"), want, rtol=1e-5)


def test_a_variable_cannot_stand_for_a_setting_that_is_no_number():
    with pytest.raises(UsageError, match="Adam: lazy_mode must be given as Python values, got the variable 'lazy'"):
        plain.Adam(lazy_mode=data("lazy", [1]))


def test_dgc_compresses_large_dense_parameters_only():
    optimizer = compressed.DGCMomentumOptimizer(RATE, 0.9, rampup_begin_step=1, sparsity=[0.9])
    large, small = parameter("large", np.zeros((128, 128))), parameter("small", np.zeros(5))
    table = parameter("table", np.zeros((128, 128)))
    rows = default_main_program().global_block().create_var(name="r", shape=[128, 128], type=VarType.SELECTED_ROWS)
    ops = optimizer.apply_gradients([(large, data("gl", [128, 128])), (small, data("gs", [5])), (table, rows)])
    assert [op.type for op in ops] == ["dgc_momentum", "momentum", "momentum"]


def test_dgc_equals_momentum_first_and_moves_only_the_largest_then():
    param = parameter("w", np.zeros((128, 128)))
    compressed.DGCMomentumOptimizer(RATE, 0.9, rampup_begin_step=2, sparsity=[0.9]).apply_gradients(
        [(param, data("g", [128, 128]))])
    states = {"Velocity": 0.0, "U": 0.0, "V": 0.0, "current_step": np.array([0])}
    want = np.zeros((128, 128))
    executor = Executor()
    executor.run(default_startup_program())
    for step in range(4):
        grad = rng.normal(size=(128, 128)).astype("float32")
        before = global_scope().array("w").copy()
        executor.run(feed={"g": grad})
        want = update_formulas.dgc_momentum(want, grad.astype(float), RATE, states, rampup_begin_step=2,
                                            sparsity=(0.9,))
        np.testing.assert_allclose(global_scope().array("w"), want, rtol=1e-4, atol=1e-6)
        moved = int((global_scope().array("w") != before).sum())
        assert moved == (128 * 128 if step < 2 else int(128 * 128 * (1 - 0.9)))


def test_dgc_clips_by_norm_only_and_shares_the_norm_out():
    optimizer = compressed.DGCMomentumOptimizer(RATE, 0.9, 0, local_grad_clip_norm=4.0, num_trainers=16)
    assert optimizer._grad_clip.clip_norm == 1.0
    with pytest.raises(UsageError, match="by norm only"):
        compressed.DGCMomentumOptimizer(RATE, 0.9, 0, grad_clip=ClipByValue(1.0))
    with pytest.raises(UsageError, match="num_trainers"):
        compressed.DGCMomentumOptimizer(RATE, 0.9, 0, grad_clip=ClipByNorm(1.0))


def test_differential_privacy_bounds_the_norm_after_the_clip_of_the_parameters():
    x = static_data("x", [None, 2])
    weight = create_parameter([2, 1], "float32", name="weight", default_initializer=Constant(0.0))
    loss = reduce_sum(matmul_v2(x, weight))
    set_gradient_clip(ClipByValue(3.0))
    plain.Dpsgd(1.0, clip=1.0, batch_size=1.0, sigma=1e-9).minimize(loss)
    executor = Executor()
    executor.run(default_startup_program())
    after, = executor.run(feed={"x": np.array([[3, 40]], "float32")}, fetch_list=[weight])
    np.testing.assert_allclose(after.ravel(), [-np.sqrt(0.5)] * 2, rtol=1e-5)  # by the norm alone: -0.07, -1


def test_differential_privacy_clips_the_gradient_and_adds_one_number_drawn_anew():
    x = static_data("x", [None, 2])
    weight = create_parameter([2, 3], "float32", name="weight", default_initializer=Constant(0.0))
    loss = reduce_sum(matmul_v2(x, weight))
    plain.Dpsgd(1.0, clip=0.5, batch_size=2.0, sigma=0.1).minimize(loss)
    executor = Executor()
    executor.run(default_startup_program())
    feed, clipped = {"x": np.array([[3, 4]], "float32")}, np.array([[3] * 3, [4] * 3]) / np.sqrt(75) * 0.5
    before, added = np.zeros((2, 3)), []
    for _ in range(20):
        after, = executor.run(feed=feed, fetch_list=[weight])
        noise = before - after - clipped
        np.testing.assert_allclose(noise, noise[0, 0], atol=1e-5)
        added.append(noise[0, 0])
        before = after
    assert len(set(added)) == 20 and 0.02 < np.std(added) < 0.1
