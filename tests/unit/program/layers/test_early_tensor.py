"""Layers of program/layers/early_tensor.py."""

import numpy as np

from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.layers import early_tensor as layers
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.tensor import create_tensor


def test_each_takes_the_arguments_of_its_time():
    a, kept, numbers = static_data("a", [2, 2]), create_tensor("float32"), create_tensor("int64")
    values = np.array([[1, 2], [3, 4]], "float32")
    filled = layers.full([2], 3.5, out=kept, dtype="float32", stop_gradient=True)
    made = [layers.flip(a, dims=[0]), layers.elementwise_equal(a, layers.full_like(a, 2.0)), filled,
            layers.randint(3, 5, [50], out=numbers), layers.randint(4), layers.randn([50], out=kept)]
    found = Executor().run(feed={"a": values}, fetch_list=made)
    assert found[0].tolist() == [[3, 4], [1, 2]] and found[1].tolist() == [[False, True], [False, False]]
    assert set(found[3]) == {3, 4} and 0 <= found[4][0] < 4 and found[4].shape == (1,)
    assert filled is kept and found[5].shape == (50,) and abs(found[5].mean()) < 1


def test_an_axis_says_where_the_second_is_laid_against_the_first():
    a, b = static_data("a", [2, 3]), static_data("b", [2])
    found, = Executor().run(feed={"a": np.array([[1, 2, 1], [3, 2, 2]], "f"), "b": np.array([1, 2], "f")},
                            fetch_list=[layers.elementwise_equal(a, b, axis=0)])
    assert found.tolist() == [[True, False, True], [False, True, True]]


def test_a_gradient_goes_on_or_stops_as_it_is_told():
    assert not layers.randint(3, stop_gradient=False).stop_gradient and layers.randn([2],
                                                                                     stop_gradient=True).stop_gradient
