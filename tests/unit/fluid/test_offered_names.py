"""``from module import *`` gives the names of every module of fluid and paddle: all of them, and nothing else."""

import importlib
import inspect
import pkgutil

import pytest

from fleet_mpi import fluid, paddle

MODULES = sorted({package.__name__ for package in (fluid, paddle)} | {
    module.name for package in (fluid, paddle)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda name: None)})


def offers(name):
    """Whether a module is one of names, and not another one under its name."""
    module = importlib.import_module(name)
    return hasattr(module, "__getattr__") and module.__name__ == name


@pytest.mark.parametrize("name", [name for name in MODULES if offers(name)])
def test_names_that_are_offered_exist_and_none_is_a_helper(name):
    module = importlib.import_module(name)
    offered = module.__all__
    assert offered == sorted(set(offered)) and set(offered) <= set(dir(module))
    for word in offered:
        found = getattr(module, word)  # a refused one too: it raises when it is called
        assert not inspect.ismodule(found) or found.__name__.startswith("fleet_mpi."), word


def test_most_modules_have_such_a_list():
    assert sum(map(offers, MODULES)) > 190


def test_a_star_gives_late_and_refused_names_too():
    given = {}
    exec("from fleet_mpi.fluid.optimizer import *", given)
    assert "AdamOptimizer" in given and given["PipelineOptimizer"].sentence and "_missing_name" not in given
