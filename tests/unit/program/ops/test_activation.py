"""Ops of program/ops/activation.py, each against a function of one Python number."""

import math

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine.formula import BLOCK
from tests.unit.program.ops.checking import Case, check_forward, checks

rng = np.random.default_rng(3)


def logistic(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def tanh_gelu(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def rounded(x):
    return math.copysign(math.floor(abs(x) + 0.5), x)


def elu(x, alpha):
    return x if x > 0 else alpha * (math.exp(x) - 1)


SELU = 1.0507009873554805, 1.6732632423543772

# Op, attributes (and where its values lie), the function of one number.
TABLE = [
    ("relu", {}, lambda x: max(x, 0.0)),
    ("sigmoid", {}, logistic),
    ("logsigmoid", {}, lambda x: math.log(logistic(x))),
    ("tanh", {}, math.tanh),
    ("tanh_shrink", {}, lambda x: x - math.tanh(x)),
    ("exp", {}, math.exp),
    ("log", {"positive": True}, math.log),
    ("log2", {"positive": True}, math.log2),
    ("log10", {"positive": True}, math.log10),
    ("log1p", {"positive": True}, math.log1p),
    ("sqrt", {"positive": True}, math.sqrt),
    ("rsqrt", {"positive": True}, lambda x: x ** -0.5),
    ("square", {}, lambda x: x * x),
    ("reciprocal", {}, lambda x: 1 / x),
    ("abs", {}, abs),
    ("sign", {}, lambda x: math.copysign(1, x)),
    ("floor", {}, math.floor),
    ("ceil", {}, math.ceil),
    ("round", {}, rounded),
    ("sin", {}, math.sin),
    ("cos", {}, math.cos),
    ("tan", {"small": True}, math.tan),
    ("asin", {"small": True}, math.asin),
    ("acos", {"small": True}, math.acos),
    ("atan", {}, math.atan),
    ("sinh", {}, math.sinh),
    ("cosh", {}, math.cosh),
    ("erf", {}, math.erf),
    ("mish", {}, lambda x: x * math.tanh(math.log1p(math.exp(x)))),
    ("softsign", {}, lambda x: x / (1 + abs(x))),
    ("relu6", {"threshold": 1.5}, lambda x: min(max(x, 0.0), 1.5)),
    ("brelu", {"t_min": -0.7, "t_max": 1.1}, lambda x: min(max(x, -0.7), 1.1)),
    ("leaky_relu", {"alpha": 0.1}, lambda x: x if x > 0 else 0.1 * x),
    ("leaky_relu", {"alpha": -0.5}, lambda x: x if x > 0 else -0.5 * x),
    ("elu", {"alpha": 0.7}, lambda x: elu(x, 0.7)),
    ("selu", {}, lambda x: SELU[0] * elu(x, SELU[1])),
    ("hard_sigmoid", {"slope": 0.4, "offset": 0.45}, lambda x: min(max(0.4 * x + 0.45, 0.0), 1.0)),
    ("stanh", {"scale_a": 0.6, "scale_b": 1.7}, lambda x: 1.7 * math.tanh(0.6 * x)),
    ("softshrink", {"lambda": 0.6}, lambda x: math.copysign(max(abs(x) - 0.6, 0.0), x)),
    ("hard_shrink", {"threshold": 0.8}, lambda x: x if abs(x) > 0.8 else 0.0),
    ("thresholded_relu", {"threshold": 0.4}, lambda x: x if x > 0.4 else 0.0),
    ("soft_relu", {"threshold": 1.3}, lambda x: math.log(1 + math.exp(min(max(x, -1.3), 1.3)))),
    ("swish", {"beta": 1.3}, lambda x: x * logistic(1.3 * x)),
    ("silu", {}, lambda x: x * logistic(x)),
    ("softplus", {}, lambda x: math.log(1 + math.exp(x))),
    ("softplus", {"beta": 2.0, "threshold": 1.5},
     lambda x: x if 2 * x > 1.5 else math.log(1 + math.exp(2 * x)) / 2),
    ("hard_swish", {"threshold": 2.2, "scale": 3.0, "offset": 1.05},
     lambda x: x * min(max(x + 1.05, 0.0), 2.2) / 3),
    ("gelu", {}, lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2)))),
    ("gelu", {"approximate": True}, tanh_gelu),
    ("pow", {"factor": 3.0}, lambda x: x ** 3),
    ("pow", {"factor": 2.0}, lambda x: x ** 2),
    ("pow", {"factor": 1.0}, lambda x: x),
    ("pow", {"factor": 0.0}, lambda x: 1.0),
    ("pow", {"factor": -1.5, "positive": True}, lambda x: x ** -1.5),
    ("pow", {"factor": 0.5, "positive": True}, lambda x: x ** 0.5),
]


def values(shape, attrs):
    """Quarters and 0.03: no kink of the table lies within the step of the differences."""
    steps = rng.integers(-9, 9, shape)
    if attrs.get("small"):
        return steps / 10 + 0.05
    return (np.abs(steps) + 1 if attrs.get("positive") else steps) / 4 + 0.03


def each(function):
    return lambda inputs, attrs: {"Out": np.vectorize(function, otypes=[float])(inputs["X"])}


def case(type, attrs, function, shape):
    x = values(shape, attrs)
    attrs = {name: value for name, value in attrs.items() if name not in ("positive", "small")}
    return Case(type, {"X": x}, attrs, each(function), grads="X", note=f"{attrs}{shape}")


def prelu(mode, shape, alpha_shape):
    def expect(inputs, attrs):
        x, alpha = inputs["X"], inputs["Alpha"]
        out = np.empty(x.shape)
        for at in np.ndindex(x.shape):
            number = {"all": 0, "channel": at[1], "element": np.ravel_multi_index(at[1:], x.shape[1:])}[mode]
            out[at] = x[at] if x[at] > 0 else alpha.flat[number] * x[at]
        return {"Out": out}
    return Case("prelu", {"X": values(shape, {}), "Alpha": rng.uniform(0.1, 0.9, alpha_shape)}, {"mode": mode}, expect,
                grads="X Alpha", note=f"{mode}{shape}")


CASES = [case(*row, shape) for row in TABLE for shape in [(2, 3), (3, 1, 2)]]
CASES += [prelu("all", (2, 3), (1,)), prelu("channel", (2, 3, 2, 2), (1, 3, 1, 1)),
          prelu("element", (2, 3, 2), (1, 3, 2))]

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_more_than_a_block_is_computed_to_the_last_element(row):
    check_forward(case(*row, (2, BLOCK + 7)))


@pytest.mark.parametrize("type, x, want", [
    ("round", [0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 8388609.0], [1, -1, 2, 3, -3, 0, 8388609]),
    ("sigmoid", [-1000.0, -100.0, 100.0, 1000.0], [0, 0, 1, 1]),
    ("logsigmoid", [-1000.0, 1000.0], [-1000, 0]),
    ("softplus", [-1000.0, 1000.0], [0, 1000]),
    ("relu", [0.0, -0.0, -np.inf, np.inf], [0, 0, 0, np.inf])])
def test_far_and_halfway_values(type, x, want):
    with np.errstate(all="raise", under="ignore"):
        want = {"Out": np.array(want, np.float32)}
        check_forward(Case(type, {"X": np.array(x, np.float32)}, expect=want), widen=False)


@pytest.mark.parametrize("type, attrs, want", [
    ("abs", {}, [3, 2, 0]), ("square", {}, [9, 4, 0]), ("sign", {}, [-1, 1, 0]),
    ("pow", {"factor": 3.0}, [-27, 8, 0]), ("exp", {}, [0, 7, 1])])
def test_integers_stay_integers(type, attrs, want):
    check_forward(Case(type, {"X": np.array([-3, 2, 0])}, attrs, {"Out": np.array(want)}))


def test_integers_are_refused_where_the_result_is_none():
    with pytest.raises(ProgramError, match="floating-point numbers, got int64: cast it first"):
        check_forward(Case("log10", {"X": np.array([1])}, expect={"Out": np.array([1])}))


def test_an_unknown_mode_of_prelu_is_named_with_the_known_ones():
    wrong = Case("prelu", {"X": np.ones((2, 2)), "Alpha": np.ones(1)}, {"mode": "one"}, {"Out": np.ones((2, 2))})
    with pytest.raises(ProgramError, match="all.*channel.*element.*got 'one'"):
        check_forward(wrong)
