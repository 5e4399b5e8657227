"""Modules that are known by name only: each has its own names, and each name is refused when it is used."""

import importlib

import pytest

from fleet_mpi import fluid, paddle
from fleet_mpi.errors import NotBuilt, UnknownName
from fleet_mpi.fluid import refused_modules
from fleet_mpi.paddle.standing_in import our_name

NAMES = [(path, name) for path, (names, _) in refused_modules.TABLE.items() for name in names.split()
         if f"{path}.{name}" not in refused_modules.TABLE]


@pytest.mark.parametrize("path, name", NAMES)
def test_a_name_is_refused_when_it_is_used(path, name):
    module = importlib.import_module(our_name(f"paddle.{path}"))
    with pytest.raises(NotBuilt, match=f"^paddle.{path}.{name}: "):
        getattr(module, name)()


def test_a_module_has_its_own_names_only():
    with pytest.raises(UnknownName, match="paddle.amp has no 'export'"):
        paddle.amp.export
    assert fluid.net_drawer is not fluid.graphviz


def test_modules_lie_in_those_above_them():
    assert fluid.distributed.downpour is importlib.import_module(our_name("paddle.fluid.distributed.downpour"))
    assert fluid.proto.framework_pb2.ProgramDesc and paddle.utils.cpp_extension.load and paddle.distributed.utils.Pod
