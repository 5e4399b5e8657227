"""Modules that are called as the function of their name."""

import importlib

import pytest

from fleet_mpi import paddle
from fleet_mpi.data.readers import batch
from fleet_mpi.errors import NotBuilt
from fleet_mpi.paddle.standing_in import our_name


def test_the_module_holds_the_function_and_is_called_as_it():
    module = importlib.import_module(our_name("paddle.batch"))
    assert module.batch is batch and [len(one) for one in module(lambda: iter(range(5)), 2)()] == [2, 2, 1]


def test_a_decorator_goes_on_working_from_its_module(capfd):
    @importlib.import_module(our_name("paddle.utils.deprecated"))(update_to="paddle.new")
    def old():
        return 1
    assert old() == 1 and "take paddle.new" in capfd.readouterr().err


def test_what_is_not_built_is_refused_in_its_module_too():
    with pytest.raises(NotBuilt, match="paddle.distributed.spawn"):
        importlib.import_module(our_name("paddle.distributed.spawn")).spawn(print)
    with pytest.raises(NotBuilt):
        paddle.distributed.spawn(print)
