"""From a program to recipes: every rule, clip and decay; what servers cannot do is refused with the op's name."""

import numpy as np
import pytest

from fleet_mpi import fluid, paddle
from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.parameter_server.recipes import Bound, BoundNorm, Decay
from fleet_mpi.transpile.reading import Updates
from fleet_mpi.update_rules import RULES

optimizer, layers, clip = fluid.optimizer, fluid.layers, fluid.clip
LEARNING = {
    "sgd": lambda: optimizer.SGD(0.1),
    "momentum": lambda: optimizer.Momentum(0.1, 0.8, use_nesterov=True),
    "lars_momentum": lambda: optimizer.LarsMomentum(0.1, 0.9, lars_coeff=0.01),
    "adagrad": lambda: optimizer.Adagrad(0.1, epsilon=1e-4),
    "decayed_adagrad": lambda: optimizer.DecayedAdagrad(0.1, decay=0.8),
    "adam": lambda: optimizer.Adam(0.1, beta1=0.8, lazy_mode=True),
    "adamw": lambda: paddle.optimizer.AdamW(0.1, weight_decay=0.3),
    "adamax": lambda: optimizer.Adamax(0.1, beta2=0.9),
    "adadelta": lambda: optimizer.Adadelta(1.0, rho=0.8),
    "rmsprop": lambda: optimizer.RMSProp(0.1, rho=0.8, momentum=0.5, centered=True),
    "ftrl": lambda: optimizer.Ftrl(0.1, l1=0.2, l2=0.3),
    "lamb": lambda: optimizer.Lamb(0.1, lamb_weight_decay=0.2),
}
SETTINGS = {"momentum": dict(mu=0.8, use_nesterov=True), "lars_momentum": dict(lars_coeff=0.01),
            "adagrad": dict(epsilon=1e-4), "decayed_adagrad": dict(decay=0.8), "adam": dict(beta1=0.8, lazy_mode=True),
            "adamw": dict(coeff=0.3), "adamax": dict(beta2=0.9), "adadelta": dict(rho=0.8),
            "rmsprop": dict(rho=0.8, momentum=0.5, centered=True), "ftrl": dict(l1=0.2, l2=0.3),
            "lamb": dict(weight_decay=0.2)}


def read():
    """The updates of the default program."""
    return Updates(fluid.default_main_program().clone())


@pytest.mark.parametrize("rule", sorted({*RULES} - {"dgc_momentum", "dpsgd"}))
def test_b38_every_optimizer_has_a_recipe_with_its_settings_and_all_its_states(network, rule):
    LEARNING[rule]().minimize(network())
    updates = read()
    assert list(updates.recipes) == ["b", "v", "w"]
    recipe = updates.recipes["w"]
    assert (recipe.rule, recipe.rate, recipe.steps) == (rule, "learning_rate_0", ())
    assert SETTINGS.get(rule, {}).items() <= dict(recipe.hypers).items()
    assert [state for state, _ in recipe.states] == [state.name for state in RULES[rule].states]
    assert all(updates.block.var(name).persistable for _, name in recipe.states)
    assert updates.gradients == {"b": "b@GRAD", "v": "v@GRAD", "w": "w@GRAD"}


def test_differential_privacy_is_a_norm_bound_and_a_rule_with_a_seed_of_each_parameter(network):
    optimizer.Dpsgd(0.1, clip=0.5, batch_size=8.0, sigma=2.0).minimize(network())
    recipes = read().recipes
    assert all((recipe.rule, recipe.steps) == ("dpsgd", (BoundNorm(0.5),)) for recipe in recipes.values())
    seeds = {dict(recipe.hypers)["seed"] for recipe in recipes.values()}
    assert len(seeds) == 3 and dict(recipes["w"].hypers)["sigma"] == 2.0


def test_decay_is_read_with_its_kind_and_coefficient(network):
    optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.25)).minimize(
        network(regularizer=fluid.regularizer.L1Decay(0.5)))
    recipes = read().recipes
    assert recipes["w"].steps == (Decay(0.5, True),) and recipes["b"].steps == recipes["v"].steps == (Decay(0.25),)


@pytest.mark.parametrize("bound, step", (
    (lambda: clip.GradientClipByValue(2.0, -1.0), Bound(-1.0, 2.0)),
    (lambda: clip.GradientClipByNorm(3.0), BoundNorm(3.0))))
def test_clips_of_each_gradient_come_before_decay(network, bound, step):
    optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.25), grad_clip=bound()).minimize(network())
    assert {recipe.steps for recipe in read().recipes.values()} == {(step, Decay(0.25))}


def test_a_global_norm_is_one_group_of_those_that_are_clipped(network):
    loss = network()
    optimizer.SGD(0.1,
                  grad_clip=clip.GradientClipByGlobalNorm(3.0, need_clip=lambda param: param.name != "b")).minimize(
        loss)
    recipes = read().recipes
    assert recipes["b"].steps == () and recipes["w"].steps == recipes["v"].steps
    step, = recipes["w"].steps
    assert step.norm == 3.0 and step.group


def test_groups_of_global_norms_stay_apart(network):
    loss = network()
    for group, names in (("one", ["w"]), ("two", ["b", "v"])):
        clip.set_gradient_clip(clip.GradientClipByGlobalNorm(1.0, group), names)
    optimizer.SGD(0.1).minimize(loss)
    groups = {name: recipe.steps[0].group for name, recipe in read().recipes.items()}
    assert groups["b"] == groups["v"] != groups["w"]


def test_a_gradient_by_rows_is_known(network):
    ids = layers.data("ids", [1], dtype="int64")
    for name, is_sparse in (("rows", True), ("dense", False)):
        layers.embedding(ids, [20, 3], is_sparse=is_sparse, param_attr=name)
    tables = [layers.reduce_sum(layers.embedding(ids, [20, 3], is_sparse=name == "rows", param_attr=name))
              for name in ("rows", "dense")]
    optimizer.SGD(0.1).minimize(layers.mean(layers.sum(tables)))
    updates = read()
    assert updates.is_by_rows("rows") and not updates.is_by_rows("dense")


# ---------------------------------------------------------------------- learning rates

def test_a_number_is_told_by_workers(network):
    optimizer.SGD(0.1).minimize(network())
    fed, dtypes, program = read().rates()
    assert fed == ("learning_rate_0",) and dtypes["learning_rate_0"] == "float32" and program is None


def test_b19_schedules_and_their_counters_are_the_servers(network):
    rate = layers.linear_lr_warmup(layers.exponential_decay(0.1, 10, 0.5), 5, 0.0, 0.1)
    optimizer.SGD(rate).minimize(network(learning_rate=0.5))
    updates = read()
    fed, _, program = updates.rates()
    types = [op.type for op in program.global_block().ops]
    assert fed == () and types[0] == "increment" and types[-1] == "scale"
    assert updates.recipes["w"].rate != updates.recipes["v"].rate == rate.name
    assert {op.type for op in updates.moved} == {*types, "sgd"}


def test_a_schedule_by_hand_is_run_by_servers_and_what_it_shares_by_workers_too(network):
    step = layers.cast(layers.autoincreased_step_counter(), "float32")
    optimizer.SGD(layers.scale(step, 0.01)).minimize(network())
    updates = read()
    fed, _, program = updates.rates()
    assert fed == () and [op.type for op in program.global_block().ops] == ["increment", "cast", "scale"]
    assert {op.type for op in updates.moved} == {"sgd"}


def test_a_rate_that_depends_on_data_is_told_by_workers(network):
    loss = network()
    rate = layers.scale(loss, 0.01)
    optimizer.SGD(rate).minimize(loss)
    assert read().rates()[0] == (rate.name,) and read().rates()[2] is None


def test_a_table_of_rates_is_the_servers_own(network):
    table = layers.create_global_var([3], 0.1, "float32", persistable=True, name="rates")
    step = layers.autoincreased_step_counter()
    optimizer.SGD(layers.gather(table, layers.elementwise_min(step, layers.fill_constant([1], "int64", 2)))).minimize(
        network())
    fed, _, program = read().rates()
    assert fed == () and "gather" in [op.type for op in program.global_block().ops]


# ---------------------------------------------------------------------- what is refused

def test_a_program_that_was_transpiled_before_is_refused(network):
    optimizer.SGD(0.1).minimize(network())
    fluid.DistributeTranspiler().transpile(0, pservers="a:1", trainers=1)
    with pytest.raises(UsageError, match="this program was transpiled before"):
        read()


@pytest.mark.parametrize("learn, said", (
    (lambda: optimizer.DGCMomentumOptimizer(0.1, 0.9, rampup_begin_step=0), "deep gradient compression is for coll"),
    (lambda: optimizer.LookaheadOptimizer(optimizer.SGD(0.1)), "op 'conditional_block'.*servers update"),
    (lambda: optimizer.GradientMergeOptimizer(optimizer.SGD(0.1), k_steps=2), "op 'sgd'.*under a condition")))
def test_optimizers_that_servers_cannot_be_are_refused_by_op(network, learn, said):
    learn().minimize(network(1300))
    with pytest.raises(NotBuilt, match=said):
        read()


def test_another_regularizer_is_refused_by_op(network):
    class Cubed(fluid.regularizer.L2Decay):
        """The parameter's square in the gradient."""

        def append_decay(self, block, param, decay):
            """One op."""
            block.append_op("square", {"X": [param]}, {"Out": [decay]})
    optimizer.SGD(0.1, regularization=Cubed(0.1)).minimize(network())
    with pytest.raises(NotBuilt, match="op 'sum'.*servers know L1 and L2 decay only"):
        read()


def test_another_step_of_the_gradient_is_refused_by_op(network):
    loss = network()
    made = optimizer.SGD(0.1)
    pairs = made.backward(loss)
    program = fluid.default_main_program()
    with program._optimized_guard([]):
        pairs = [(param, layers.tanh(grad)) for param, grad in pairs]
    made.apply_gradients(pairs)
    with pytest.raises(NotBuilt, match="op 'tanh'.*servers do not know this step of the update of 'b'"):
        read()


def test_two_updates_of_a_parameter_are_refused(network):
    loss = network()
    for _ in range(2):
        optimizer.SGD(0.1).minimize(loss)
    with pytest.raises(NotBuilt, match="op 'sgd'.*the parameter 'b' is updated twice"):
        read()


def test_loss_scaling_is_refused(network):
    fluid.contrib.mixed_precision.decorate(optimizer.SGD(0.1), use_dynamic_loss_scaling=True).minimize(network())
    with pytest.raises(NotBuilt, match="loss scaling"):
        read()


def made_by(way):
    """A variable of value 0.8 for a setting, by name of how it is made."""
    if way == "a constant in the program":
        return layers.fill_constant([1], "float32", 0.8)
    beta = layers.create_global_var([1], 0.8, "float32", persistable=True)
    if way == "assigned":
        layers.assign(layers.fill_constant([1], "float32", 0.7), beta)
    if way == "assigned under a condition":
        with layers.Switch() as switch:
            with switch.case(layers.less_than(beta, layers.fill_constant([1], "float32", 0.5))):
                layers.assign(layers.fill_constant([1], "float32", 0.7), beta)
    return layers.scale(beta, 1.0) if way == "computed" else beta


@pytest.mark.parametrize("way", ("a constant in the program", "a variable of the startup program"))
def test_a_setting_that_is_a_variable_of_one_value_is_that_number(network, transpiled, way):
    optimizer.Adam(0.1, beta1=made_by(way), beta2=0.99).minimize(network())
    recipes = transpiled(servers=2).distribution.recipes
    assert {dict(one.hypers)["beta1"] for one in recipes.values()} == {float(np.float32(0.8))}
    assert {dict(one.hypers)["beta2"] for one in recipes.values()} == {0.99}


@pytest.mark.parametrize("way", ("computed", "assigned", "assigned under a condition"))
def test_a_setting_that_is_another_variable_is_refused_with_servers(network, transpiled, way):
    optimizer.Adam(0.1, beta1=made_by(way)).minimize(network())
    with pytest.raises(NotBuilt, match="beta1 is a variable that does not keep one value.*; give numbers"):
        transpiled()
