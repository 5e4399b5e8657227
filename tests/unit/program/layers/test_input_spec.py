"""InputSpec: a description of what is fed."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.scope import Tensor
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.input_spec import InputSpec


def test_a_description_has_shape_type_and_name():
    made = InputSpec([None, 784], "int64", "x")
    assert (made.shape, made.dtype, made.name) == ((-1, 784), "int64", "x")
    assert made == InputSpec([-1, 784], np.int64, "x") != InputSpec([-1, 784], "int64", "y")
    assert hash(made) == hash(InputSpec([-1, 784], np.int64, "x")) and "shape=(-1, 784)" in repr(made)


def test_from_what_there_is():
    assert InputSpec.from_numpy(np.ones((2, 3))) == InputSpec([2, 3], "float64")
    assert InputSpec.from_tensor(static_data("x", [None, 3], "int32")) == InputSpec([-1, 3], "int32", "x")
    assert InputSpec.from_tensor(Tensor(np.ones((2, 3), "float32")), "y") == InputSpec([2, 3], "float32", "y")


def test_a_dimension_for_the_batch():
    made = InputSpec([4])
    assert made.batch(8).shape == (8, 4) and made.unbatch().shape == (4,) and made.batch([-1]) is made
    for wrong in (lambda: made.batch("8"), lambda: made.batch([1, 2]), lambda: InputSpec([]).unbatch()):
        with pytest.raises(UsageError, match="InputSpec"):
            wrong()


def test_it_declares_a_variable_of_the_default_program():
    assert InputSpec([None, 2], "int64", "ids").declare().shape == (-1, 2)
    assert InputSpec([None, 2]).declare("other") is default_main_program().global_block().var("other")
