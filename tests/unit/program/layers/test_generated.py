"""Layers from the op table, and the one that custom layers of scripts call."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.generated import elementwise_of, generate_layer_fn


def run(out, **feed):
    return Executor().run(feed={name: np.array(value, "float32") for name, value in feed.items()}, fetch_list=[out])[0]


def test_inputs_come_by_position_or_name_and_the_rest_are_attributes():
    x, y = static_data("x", [None, 2]), static_data("y", [None, 2])
    layer = generate_layer_fn("elementwise_sub")
    assert layer.__name__ == "elementwise_sub" and "x, y" in layer.__doc__
    assert run(layer(x, y=y, act="relu"), x=[[5, 1]], y=[[3, 4]]).tolist() == [[2, 0]]
    assert run(generate_layer_fn("scale")(x, scale=2.0, bias=1.0), x=[[5, 1]]).tolist() == [[11, 3]]


def test_an_unknown_argument_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="scale has neither an input nor an attribute 'scal'; did you mean 'scale'"):
        generate_layer_fn("scale")(static_data("x", [None, 2]), scal=2.0)


def test_an_elementwise_op_is_named_by_its_helper():
    x, y = static_data("x", [None, 2]), static_data("y", [None])
    out = elementwise_of(LayerHelper("elementwise_add", x=x, y=y, axis=0, act="relu"))
    assert run(out, x=[[1, 2], [3, 4]], y=[10, -10]).tolist() == [[11, 12], [0, 0]]
