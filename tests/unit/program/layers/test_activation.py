"""Layers of program/layers/activation.py: which op they add, with which attributes."""

import inspect

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.layers import activation

PLAIN = """relu sigmoid logsigmoid tanh tanh_shrink exp log log1p sqrt rsqrt square reciprocal abs sign floor ceil
    round sin cos tan asin acos atan sinh cosh erf softsign softplus silu""".split()


def input_of(main, shape=(-1, 4, 3, 3), dtype="float32"):
    return main.global_block().create_var(name="x", shape=shape, dtype=dtype, is_data=True, stop_gradient=False)


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_layer_adds_its_op(programs, name):
    layer, x = getattr(activation, name), input_of(programs[0])
    out = layer(x)
    assert str(inspect.signature(layer)) == "(x, name=None)" and layer.__doc__
    assert out.name == f"{name}_0.tmp_0" and out.shape == x.shape
    assert [op.type for op in programs[0].global_block().ops] == [name]
    assert layer(x, name="mine").name == "mine.tmp_0"


@pytest.mark.parametrize("make, type, attrs", [
    (lambda x: activation.relu6(x), "relu6", {"threshold": 6.0}),
    (lambda x: activation.brelu(x, 1.0), "brelu", {"t_min": 1.0, "t_max": 24.0}),
    (lambda x: activation.leaky_relu(x), "leaky_relu", {"alpha": 0.02}),
    (lambda x: activation.elu(x, 0.5), "elu", {"alpha": 0.5}),
    (lambda x: activation.selu(x), "selu", {"scale": 1.0507009873554805, "alpha": 1.6732632423543772}),
    (lambda x: activation.gelu(x, True), "gelu", {"approximate": True}),
    (lambda x: activation.swish(x), "swish", {"beta": 1.0}),
    (lambda x: activation.hard_sigmoid(x), "hard_sigmoid", {"slope": 0.2, "offset": 0.5}),
    (lambda x: activation.hard_swish(x), "hard_swish", {"threshold": 6.0, "scale": 6.0, "offset": 3.0}),
    (lambda x: activation.stanh(x), "stanh", {"scale_a": 0.67, "scale_b": 1.7159}),
    (lambda x: activation.softshrink(x), "softshrink", {"lambda": 0.5}),
    (lambda x: activation.hard_shrink(x, 0.25), "hard_shrink", {"threshold": 0.25}),
    (lambda x: activation.thresholded_relu(x), "thresholded_relu", {"threshold": 1.0}),
    (lambda x: activation.soft_relu(x), "soft_relu", {"threshold": 40.0})])
def test_attributes_and_their_defaults(programs, make, type, attrs):
    make(input_of(programs[0]))
    op, = programs[0].global_block().ops
    assert op.type == type and {name: op.attr(name) for name in attrs} == attrs


@pytest.mark.parametrize("mode, shape", [("all", (1,)), ("channel", (1, 4, 1, 1)), ("element", (1, 4, 3, 3))])
def test_prelu_learns_alpha_from_a_quarter(programs, mode, shape):
    main, startup = programs
    out = activation.prelu(input_of(main), mode)
    alpha, = main.all_parameters()
    assert alpha.shape == shape and alpha.name == "prelu_0.w_0"
    scope = Scope()
    Executor().run(startup, scope=scope)
    found, = Executor().run(main, feed={"x": np.full((2, 4, 3, 3), -2, np.float32)}, fetch_list=[out], scope=scope)
    np.testing.assert_array_equal(found, np.full((2, 4, 3, 3), -0.5))


def test_what_is_no_variable_is_refused(programs):
    with pytest.raises(UsageError, match="relu: argument 'x' must be a variable of the program, got list"):
        activation.relu([1, 2])
