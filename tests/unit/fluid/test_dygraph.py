"""Eager mode: everything of it can be imported, and only its use is refused."""

import numpy as np
import pytest

from fleet_mpi import fluid, paddle
from fleet_mpi.errors import NotBuilt, UnknownName


@pytest.mark.parametrize("use", (
    lambda: fluid.dygraph.guard(), lambda: fluid.dygraph.to_variable(np.ones(1)), lambda: fluid.dygraph.nn.Linear(1, 2),
    lambda: fluid.dygraph.parallel.DataParallel(None, None), lambda: fluid.enable_dygraph(),
    lambda: paddle.grad([], []),
    lambda: paddle.DataParallel(None), lambda: paddle.jit.save(None, "path")))
def test_its_use_says_that_there_is_none(use):
    with pytest.raises(NotBuilt, match="there is no eager mode"):
        use()


def test_its_layers_can_be_inherited_from_and_are_refused_when_made():
    class Mine(fluid.dygraph.Conv2D):
        pass
    with pytest.raises(NotBuilt, match="dygraph.Conv2D: there is no eager mode"):
        Mine(1, 2, 3)


def test_a_layer_of_it_is_a_layer():
    class Net(fluid.dygraph.Layer):
        def forward(self, x):
            return fluid.layers.fc(x, 3)
    assert Net()(fluid.data("x", [None, 2])).shape == (-1, 3) and issubclass(fluid.dygraph.Layer, paddle.nn.Layer)


def test_no_grad_does_nothing_in_static_programs():
    @paddle.no_grad()
    def twice(x):
        return 2 * x

    @fluid.dygraph.no_grad
    def thrice(x):
        return 3 * x
    with fluid.dygraph.no_grad():
        assert (twice(2), thrice(2), fluid.dygraph.enabled()) == (4, 6, False)


def test_a_translated_function_is_refused_when_it_is_called():
    @paddle.jit.to_static
    def forward(x):
        return x

    @paddle.jit.to_static(input_spec=[1])
    def other(x):
        return x

    @fluid.dygraph.declarative
    def early(x):
        return x
    for function in (forward, other, early):
        with pytest.raises(NotBuilt, match=rf"to_static\({function.__name__}\)"):
            function(1)
    assert paddle.jit.not_to_static(len) is len
    with pytest.raises(NotBuilt, match="no eager mode to translate from"):
        paddle.jit.to_static(fluid.Executor)


def test_who_trains_beside_this_process():
    strategy = fluid.dygraph.parallel.ParallelStrategy()
    assert (strategy.nranks, strategy.local_rank) == (1, 0)
    assert (strategy.trainer_endpoints, strategy.current_endpoint) == ([], "")
    assert fluid.dygraph.parallel.Env().nranks == 1


def test_an_unknown_name_is_unknown():
    with pytest.raises(UnknownName, match="paddle.fluid.dygraph has no 'guardd'"):
        fluid.dygraph.guardd
    with pytest.raises(UnknownName, match="paddle.nn.layer has no 'Liner'.*'Linear'"):
        paddle.nn.layer.Liner
    assert paddle.nn.layer.common.Linear is paddle.nn.Linear
