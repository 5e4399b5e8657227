"""``paddle.Tensor``: a class to ask and annotate with, whose answers follow the mode that the script means."""

import numpy as np
import pytest

from fleet_mpi import fluid, paddle
from fleet_mpi.errors import NotBuilt
from fleet_mpi.paddle import modes


@pytest.fixture
def eager(monkeypatch):
    """As in a script that never called enable_static."""
    monkeypatch.setattr(modes, "_static_was_asked_for", False)


def test_a_variable_is_a_tensor_to_scripts_of_eager_mode_only(eager):
    x = paddle.static.data("x", [None, 2])
    assert isinstance(x, paddle.Tensor) and isinstance(x, (list, paddle.Tensor)) and paddle.is_tensor(x)
    paddle.enable_static()
    assert not isinstance(x, paddle.Tensor) and isinstance(x, paddle.static.Variable)


@pytest.mark.parametrize("value", (np.ones(2), [1.0], 3, None, fluid.LoDTensor()))
def test_values_are_none(eager, value):
    assert not isinstance(value, paddle.Tensor)


def test_the_class_serves_annotations_and_is_not_made():
    def forward(x: paddle.Tensor) -> paddle.Tensor:
        return x
    assert forward.__annotations__["x"] is paddle.Tensor is paddle.framework.VarBase is fluid.core.VarBase
    with pytest.raises(NotBuilt, match="paddle.Tensor: there is no eager mode"):
        paddle.Tensor([1.0])


def test_the_names_of_lod_tensors_are_others():
    assert fluid.Tensor is fluid.core.LoDTensor is not paddle.Tensor
