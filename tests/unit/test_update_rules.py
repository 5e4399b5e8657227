"""Each rule against its formula in float64, rows against dense gradients, slices against the whole, the table."""

import inspect

import numpy as np
import pytest

from fleet_mpi import update_rules
from fleet_mpi.arrays import Rows, to_host
from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.kernels.reference import random
from fleet_mpi.testing import device
from fleet_mpi.update_rules import RULES

STEPS = 4
RATE = 0.05


# The formulas once more, in plain numpy float64: they return the new parameter and keep their state in ``s``.

def plain_sgd(p, g, s, t):
    return p - RATE * g


def plain_momentum(p, g, s, t, mu=0.9, use_nesterov=False, regularization_coeff=0.0, rescale_grad=1.0):
    g = g * rescale_grad + p * regularization_coeff
    s["v"] = s.get("v", 0) * mu + g
    return p - RATE * (g + mu * s["v"]) if use_nesterov else p - RATE * s["v"]


def plain_lars_momentum(p, g, s, t, mu=0.9, lars_coeff=0.001, lars_weight_decay=0.0005, epsilon=0.0, rescale_grad=1.0):
    g = g * rescale_grad
    p_norm, g_norm = np.linalg.norm(p), np.linalg.norm(g)
    rate = RATE
    if lars_weight_decay > 0 and p_norm > 0 and g_norm > 0:
        rate = RATE * lars_coeff * p_norm / (g_norm + lars_weight_decay * p_norm + epsilon)
    s["v"] = s.get("v", 0) * mu + rate * (g + lars_weight_decay * p)
    return p - s["v"]


def plain_adagrad(p, g, s, t, epsilon=1e-6):
    s["m"] = s.get("m", 0) + g ** 2
    return p - RATE * g / (s["m"] ** 0.5 + epsilon)


def plain_decayed_adagrad(p, g, s, t, decay=0.95, epsilon=1e-6):
    s["m"] = s.get("m", 0) * decay + (1 - decay) * g ** 2
    return p - RATE * g / (s["m"] ** 0.5 + epsilon)


def adam_moments(g, s, beta1, beta2):
    s["m"] = s.get("m", 0) * beta1 + (1 - beta1) * g
    s["v"] = s.get("v", 0) * beta2 + (1 - beta2) * g ** 2


def plain_adam(p, g, s, t, beta1=0.9, beta2=0.999, epsilon=1e-8):
    adam_moments(g, s, beta1, beta2)
    # The paper's form: equal to the folded one when epsilon is scaled with the second moment.
    return p - RATE * (s["m"] / (1 - beta1 ** t)) / ((s["v"] / (1 - beta2 ** t)) ** 0.5 + epsilon)


def plain_adamw(p, g, s, t, coeff=0.01, **hypers):
    return plain_adam(p * (1 - RATE * coeff), g, s, t, **hypers)


def plain_adamax(p, g, s, t, beta1=0.9, beta2=0.999, epsilon=1e-8):
    s["m"] = s.get("m", 0) * beta1 + (1 - beta1) * g
    s["n"] = np.maximum(abs(g), s.get("n", 0) * beta2 + epsilon)
    return p - RATE / (1 - beta1 ** t) * s["m"] / s["n"]


def plain_adadelta(p, g, s, t, rho=0.95, epsilon=1e-6, use_learning_rate=False):
    s["g"] = s.get("g", 0) * rho + (1 - rho) * g ** 2
    step = -(((s.get("x", 0) + epsilon) / (s["g"] + epsilon)) ** 0.5) * g
    s["x"] = s.get("x", 0) * rho + (1 - rho) * step ** 2
    return p + step * (RATE if use_learning_rate else 1)


def plain_rmsprop(p, g, s, t, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False):
    s["r"] = s.get("r", 0) * rho + (1 - rho) * g ** 2
    s["g"] = s.get("g", 0) * rho + (1 - rho) * g
    spread = s["r"] - s["g"] ** 2 if centered else s["r"]
    s["m"] = s.get("m", 0) * momentum + RATE * g / (spread + epsilon) ** 0.5
    return p - s["m"]


def plain_ftrl(p, g, s, t, l1=0.0, l2=0.0, lr_power=-0.5):
    l1, l2 = l1 + 1e-10, l2 + 1e-10
    old = s.get("n", np.zeros_like(p))
    s["n"] = old + g ** 2
    s["z"] = s.get("z", 0) + g - (s["n"] ** -lr_power - old ** -lr_power) / RATE * p
    return np.where(abs(s["z"]) > l1, (l1 * np.sign(s["z"]) - s["z"]) / (s["n"] ** -lr_power / RATE + 2 * l2), 0)


def plain_lamb(p, g, s, t, weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6):
    adam_moments(g, s, beta1, beta2)
    r = (s["m"] / (1 - beta1 ** t)) / ((s["v"] / (1 - beta2 ** t)) ** 0.5 + epsilon) + weight_decay * p
    return p - RATE * np.linalg.norm(p) / np.linalg.norm(r) * r


def plain_dgc_momentum(p, g, s, t, mu=0.9, use_nesterov=False, rampup_begin_step=0, rampup_step=1, sparsity=(0.999,)):
    if t - 1 < rampup_begin_step:
        return plain_momentum(p, g, s, t, mu, use_nesterov)
    s["u"] = mu * (s.get("u", 0) + g) if use_nesterov else mu * s.get("u", 0) + g
    total = s.get("w", 0) + s["u"] + (g if use_nesterov else 0)
    part = min(len(sparsity) - 1, int((t - 1 - rampup_begin_step) * len(sparsity) / rampup_step))
    count = max(1, int(p.size * (1 - sparsity[part])))
    sent = np.isin(np.arange(p.size), np.argsort(-abs(total).ravel())[:count]).reshape(p.shape)
    s["u"], s["w"] = np.where(sent, 0, s["u"]), np.where(sent, 0, total)
    return p - RATE * np.where(sent, total, 0)


def plain_dpsgd(p, g, s, t, batch_size=0.999, sigma=1e-8, seed=0):
    noise = np.empty(1, np.float32)
    random.normal.reference(noise, random.key_of(seed, "dpsgd"), t - 1, 0, 0.0, sigma)
    return p - RATE * (g + float(noise[0]) / batch_size)


VARIANTS = [
    ("dpsgd", {}), ("dpsgd", {"batch_size": 4.0, "sigma": 2.0, "seed": 5}),
    ("sgd", {}), ("momentum", {}), ("momentum", {"use_nesterov": True, "mu": 0.5}),
    ("momentum", {"regularization_coeff": 0.1, "rescale_grad": 0.25}),
    ("lars_momentum", {}), ("lars_momentum", {"lars_weight_decay": 0.0}),
    ("lars_momentum", {"lars_coeff": 0.1, "epsilon": 1e-3, "rescale_grad": 0.5}),
    ("adagrad", {}), ("adagrad", {"epsilon": 0.1}), ("decayed_adagrad", {}), ("decayed_adagrad", {"decay": 0.5}),
    ("adam", {}), ("adam", {"beta1": 0.5, "beta2": 0.9, "epsilon": 0.01}), ("adamw", {}), ("adamw", {"coeff": 0.5}),
    ("adamax", {}), ("adamax", {"beta1": 0.5, "beta2": 0.9, "epsilon": 0.01}),
    ("adadelta", {}), ("adadelta", {"rho": 0.5, "epsilon": 0.01, "use_learning_rate": True}),
    ("rmsprop", {}), ("rmsprop", {"centered": True, "momentum": 0.9}), ("rmsprop", {"rho": 0.5, "momentum": 0.5}),
    ("ftrl", {}), ("ftrl", {"l1": 0.3, "l2": 0.2}), ("ftrl", {"lr_power": -0.7, "l1": 0.1}),
    ("lamb", {}), ("lamb", {"weight_decay": 0.3, "epsilon": 0.01, "beta1": 0.5}),
    ("dgc_momentum", {}), ("dgc_momentum", {"rampup_begin_step": 2, "rampup_step": 2, "sparsity": (0.5, 0.9)}),
    ("dgc_momentum", {"use_nesterov": True, "sparsity": (0.8,)}),
]
ELEMENTWISE = [(name, hypers) for name, hypers in VARIANTS if not RULES[name].needs_whole]


def gradients(shape, dtype, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for _ in range(STEPS)]


def row_gradients(height, width, seed=1, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return [Rows(rng.integers(0, height, 6), rng.standard_normal((6, width)).astype(dtype), height)
            for _ in range(STEPS)]


def start(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def trained(name, hypers, grads, param):
    """The parameter and its states after all gradients; ``param`` is left alone."""
    rule, param = RULES[name], param.copy()
    states, rate = rule.new_states(param, **hypers), np.array([RATE], param.dtype)
    for grad in grads:
        rule.run(param, grad, rate, *states, **rule.complete(hypers))
    return param, states


def ids_of(variants):
    return [f"{name}-{'-'.join(hypers) or 'defaults'}" for name, hypers in variants]


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-10), (np.float32, 3e-5)])
@pytest.mark.parametrize("name, hypers", VARIANTS, ids=ids_of(VARIANTS))
def test_a_rule_follows_its_formula_over_several_steps(name, hypers, dtype, tolerance):
    param = start((5, 3, 2), dtype)
    grads = gradients(param.shape, dtype)
    expected, state = param.astype(np.float64), {}
    for step, grad in enumerate(grads, start=1):
        expected = globals()[f"plain_{name}"](expected, grad.astype(np.float64), state, step, **hypers)
    got, _ = trained(name, hypers, grads, param)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
    assert got.dtype == dtype


@pytest.mark.parametrize("name, hypers", ELEMENTWISE, ids=ids_of(ELEMENTWISE))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slices_give_the_bits_of_the_whole(name, hypers, dtype):
    param, grads = start((37, 5), dtype), gradients((37, 5), dtype)
    whole, states = trained(name, hypers, grads, param)
    for begin, end in ((0, 1), (1, 4), (4, 21), (21, 37)):
        part, part_states = trained(name, hypers, [grad[begin:end] for grad in grads], param[begin:end])
        np.testing.assert_array_equal(part, whole[begin:end])
        for state, of_part, of_whole in zip(RULES[name].states, part_states, states, strict=True):
            np.testing.assert_array_equal(of_part, of_whole[begin:end] if state.like_param else of_whole)


LIKE_A_ZERO_GRADIENT = [(name, hypers) for name, hypers in VARIANTS if name != "ftrl"]


@pytest.mark.parametrize("name, hypers", LIKE_A_ZERO_GRADIENT, ids=ids_of(LIKE_A_ZERO_GRADIENT))
def test_rows_give_the_bits_of_a_dense_gradient_with_zero_rows(name, hypers):
    param, grads = start((11, 4), np.float32), row_gradients(11, 4, dtype=np.float32)
    by_rows, row_states = trained(name, hypers, grads, param)
    dense, states = trained(name, hypers, [grad.to_dense() for grad in grads], param)
    np.testing.assert_array_equal(by_rows, dense)
    for one, other in zip(row_states, states, strict=True):
        np.testing.assert_array_equal(one, other)


STAYING = [("sgd", {}), ("adagrad", {}), ("ftrl", {}), ("ftrl", {"l1": 0.3}), ("adam", {"lazy_mode": True}),
           ("adamw", {"lazy_mode": True})]


@pytest.mark.parametrize("name, hypers", STAYING, ids=ids_of(STAYING))
def test_rows_not_mentioned_stay_and_the_others_are_updated_alone(name, hypers):
    assert RULES[name].untouched_rows in ("stay", "lazy_mode")
    param = start((9, 3))
    rows = [Rows(np.array([7, 2, 7]), values, 9) for values in gradients((3, 3), np.float64)]
    got, states = trained(name, hypers, rows, param)
    untouched = [0, 1, 3, 4, 5, 6, 8]
    np.testing.assert_array_equal(got[untouched], param[untouched])
    merged = [np.stack([one.values[0] + one.values[2], one.values[1]]) for one in rows]
    alone, alone_states = trained(name, hypers, merged, param[[7, 2]])
    np.testing.assert_array_equal(got[[7, 2]], alone)
    for state, one, other in zip(RULES[name].states, states, alone_states, strict=True):
        np.testing.assert_array_equal(one[[7, 2]] if state.like_param else one, other)


def test_rows_not_mentioned_move_on_along_their_velocity():
    param = start((4, 2))
    grads = [Rows(np.array([1]), np.ones((1, 2)), 4), Rows(np.array([3]), np.ones((1, 2)), 4)]
    got, _ = trained("momentum", {}, grads, param)
    np.testing.assert_allclose(param[1] - got[1], RATE * (1 + 0.9))
    np.testing.assert_array_equal(got[[0, 2]], param[[0, 2]])


@pytest.mark.parametrize("shape, row", [((6,), ()), ((6, 2, 3), (2, 3))])
@pytest.mark.parametrize("name", ["sgd", "momentum", "adagrad", "adam", "ftrl", "rmsprop"])
def test_rows_may_have_any_number_of_dimensions(name, shape, row):
    param = start(shape)
    grad = Rows(np.array([4, 1]), np.ones((2, *row)), 6)
    got, _ = trained(name, {}, [grad], param)
    dense, _ = trained(name, {}, [grad.to_dense()], param)
    np.testing.assert_array_equal(got[[4, 1]], dense[[4, 1]])


@pytest.mark.parametrize("name", RULES)
def test_a_gradient_without_any_row_is_like_a_zero_gradient_or_none(name):
    param = start((5, 2))
    got, _ = trained(name, {}, [Rows(np.empty(0, np.int64), np.empty((0, 2)), 5)], param)
    expected = param if RULES[name].untouched_rows == "stay" else trained(name, {}, [np.zeros((5, 2))], param)[0]
    np.testing.assert_array_equal(got, expected)


def test_a_row_outside_the_parameter_is_refused():
    with pytest.raises(ProgramError, match="id 5 at position 1"):
        trained("sgd", {}, [Rows(np.array([0, 5]), np.ones((2, 2)), 5)], start((5, 2)))


def test_rows_of_another_table_are_refused():
    for grad in (Rows(np.array([0]), np.ones((1, 2)), 6), Rows(np.array([0]), np.ones((1, 3)), 5)):
        with pytest.raises(ProgramError, match="must fit"):
            trained("sgd", {}, [grad], start((5, 2)))


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "lamb"])
def test_a_gradient_of_another_size_is_refused(name):
    with pytest.raises(ProgramError, match="shape"):
        trained(name, {}, [np.ones((5, 3))], start((5, 2)))


def test_an_array_with_gaps_is_refused_where_a_copy_would_lose_the_step():
    param = np.zeros((4, 6))[:, ::2]
    with pytest.raises(ProgramError, match="contiguous"):
        update_rules.sgd(param, np.ones((4, 3)), np.array([0.1]))
    with pytest.raises(ProgramError, match="contiguous"):
        update_rules.sgd(param, Rows(np.array([1]), np.ones((1, 3)), 4), np.array([0.1]))


def test_adagrad_starts_from_the_given_moment():
    (moment,) = RULES["adagrad"].new_states(np.zeros(3), initial_accumulator_value=0.25)
    assert moment.tolist() == [0.25] * 3
    param = np.zeros(3)
    update_rules.adagrad(param, np.full(3, 2.0), np.array([1.0]), moment)
    np.testing.assert_allclose(param, -2 / (4.25 ** 0.5 + 1e-6))


@pytest.mark.parametrize("name, count", [("adam", 2), ("adamw", 2), ("lamb", 2), ("adamax", 1)])
def test_beta_powers_start_at_beta_and_are_multiplied_after_use(name, count):
    hypers = {"beta1": 0.5, "beta2": 0.25}
    _, states = trained(name, hypers, gradients((3,), np.float64), start((3,)))
    assert [float(state[0]) for state in states[2:]] == [0.5 ** (STEPS + 1), 0.25 ** (STEPS + 1)][:count]


def test_a_rate_of_another_dtype_does_not_widen_the_arithmetic():
    param, grad = start((40,), np.float32), start((40,), np.float32, seed=3)
    other = param.copy()
    update_rules.sgd(param, grad, np.array([0.1], np.float32))
    update_rules.sgd(other, grad, np.array([np.float32(0.1)], np.float64))
    np.testing.assert_array_equal(param, other)


def whole_squares(slices):
    nodes = [node for begin, part in slices for node in update_rules.square_nodes(part, begin)]
    return update_rules.join_squares(nodes)


CUTS = ((0, 3), (3, 1000), (1000, 8192), (8192, 9001))


def test_lars_on_slices_with_joined_norms_gives_the_bits_of_the_whole():
    param, grad = start((9001,), np.float32), start((9001,), np.float32, seed=2)
    whole, velocity, rate = param.copy(), np.zeros_like(param), np.array([0.1], np.float32)
    update_rules.lars_momentum(whole, grad, rate, velocity)
    squares = [whole_squares([(begin, one[begin:end]) for begin, end in reversed(CUTS)]) for one in (param, grad)]
    for begin, end in CUTS:
        part = param[begin:end]
        update_rules.lars_momentum(part, grad[begin:end], rate, np.zeros_like(part), squares=squares)
    np.testing.assert_array_equal(param, whole)


def test_lamb_on_slices_with_joined_norms_gives_the_bits_of_the_whole():
    param, grad = start((9001,), np.float32), start((9001,), np.float32, seed=2)
    whole, rate = param.copy(), np.array([0.1], np.float32)
    update_rules.lamb(whole, grad, rate, *RULES["lamb"].new_states(whole))
    new_states = RULES["lamb"].new_states
    directions = [update_rules.lamb_direction(param[begin:end], grad[begin:end], *new_states(param[begin:end]))
                  for begin, end in CUTS]
    squares = (whole_squares([(begin, param[begin:end]) for begin, end in CUTS]),
               whole_squares([(begin, one) for (begin, _), one in zip(CUTS, directions, strict=True)]))
    for (begin, end), direction in zip(CUTS, directions, strict=True):
        update_rules.lamb_step(param[begin:end], direction, rate, squares)
    np.testing.assert_array_equal(param, whole)


def test_slices_that_leave_a_gap_have_no_norm():
    with pytest.raises(UsageError, match="expected one at 4"):
        whole_squares([(0, np.ones(4)), (8, np.ones(4))])


def test_a_zero_parameter_takes_the_plain_rate_in_lamb_and_lars():
    for name in ("lamb", "lars_momentum"):
        got, _ = trained(name, {}, [np.ones(4)], np.zeros(4))
        np.testing.assert_allclose(got, -RATE, rtol=1e-5)


@pytest.mark.parametrize("steps, expected", [(0, 250), (1, 250), (2, 62), (3, 62), (4, 1), (100, 1)])
def test_dgc_sends_fewer_elements_as_the_ramp_up_goes_on(steps, expected):
    assert update_rules.dgc_count(1000, steps, 6, (0.75, 0.9375, 0.9999)) == expected


@pytest.mark.parametrize("name, hypers", VARIANTS, ids=ids_of(VARIANTS))
def test_a_bound_step_is_the_same_step(name, hypers):
    param, (grad, *_) = start((5, 3), np.float32), gradients((5, 3), np.float32)
    rule, bound, rate = RULES[name], start((5, 3), np.float32), np.array([RATE], np.float32)
    states, bound_states = rule.new_states(param, **hypers), rule.new_states(param, **hypers)
    step = rule.bind(bound, grad, rate, bound_states, **hypers)
    for _ in range(2):
        rule.run(param, grad, rate, *states, **hypers)
        step()
    np.testing.assert_array_equal(bound, param)
    for one, other in zip(states, bound_states, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_bound_step_of_rows_is_the_same_step():
    param, bound, rate = start((5, 3)), start((5, 3)), np.array([RATE])
    rows = Rows(np.array([4, 4, 0]), np.ones((3, 3)), 5)
    RULES["sgd"].bind(bound, rows, rate, [])()
    update_rules.sgd(param, rows, rate)
    np.testing.assert_array_equal(bound, param)


@pytest.mark.parametrize("name, hypers", VARIANTS, ids=ids_of(VARIANTS))
@pytest.mark.parametrize("by_rows", [False, True])
def test_a_rule_gives_the_same_on_device_arrays(name, hypers, by_rows):
    param = start((7, 3), np.float32)
    grads = row_gradients(7, 3, dtype=np.float32) if by_rows else gradients((7, 3), np.float32)
    expected, _ = trained(name, hypers, grads, param)
    rule, on_device, rate = RULES[name], device.asarray(param), device.asarray(np.array([RATE], np.float32))
    states = rule.new_states(on_device, **hypers)
    for grad in grads:
        moved = (Rows(device.asarray(grad.ids), device.asarray(grad.values), grad.height) if by_rows
                 else device.asarray(grad))
        rule.run(on_device, moved, rate, *states, **hypers)
    np.testing.assert_allclose(to_host(on_device), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", RULES)
def test_the_table_tells_the_signature_of_the_rule(name):
    rule = RULES[name]
    parameters = list(inspect.signature(rule.run).parameters.values())
    assert [p.name for p in parameters[:3]] == ["param", "grad", "learning_rate"]
    required = [p for p in parameters[3:] if p.default is p.empty]
    assert len(required) == len(rule.states)
    optional = {p.name: p.default for p in parameters if p.default is not p.empty}
    optional.pop("squares", None)  # what servers pass when they keep slices
    assert optional == dict(rule.hypers)


def test_states_lie_like_the_parameter_or_are_single():
    param = np.zeros((3, 2), np.float32)
    for rule in RULES.values():
        for state, array in zip(rule.states, rule.new_states(param), strict=True):
            assert array.shape == (param.shape if state.like_param else (1,))
            assert array.dtype == (state.dtype or param.dtype)


def test_an_unknown_hyper_parameter_is_named_with_the_nearest():
    with pytest.raises(UsageError, match="'epsilom'.*'epsilon'"):
        RULES["adam"].complete({"epsilom": 1e-3})


def test_hyper_parameters_take_the_type_of_their_defaults():
    complete = RULES["dgc_momentum"].complete({"mu": 1, "sparsity": [0.5, 0.75]})
    assert type(complete["mu"]) is float and complete["sparsity"] == (0.5, 0.75)


def test_a_merger_keeps_its_buffers_and_leaves_merged_rows_alone():
    merger = update_rules.RowMerger()
    first = merger(Rows(np.array([3, 1, 3]), np.ones((3, 2)), 5))
    assert isinstance(first, update_rules.MergedRows) and first.ids.tolist() == [3, 1]
    assert first.values.tolist() == [[2, 2], [1, 1]]
    second = merger(Rows(np.array([2]), np.ones((1, 2)), 5))
    assert np.shares_memory(second.values, first.values) and second.ids.tolist() == [2]
    assert merger(second) is second
    assert merger(Rows(np.array([2]), np.ones((1, 3), np.float32), 5)).values.dtype == np.float32
