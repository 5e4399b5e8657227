"""``paddle`` stands for this package: the same modules, whatever name they are imported by."""

import sys

import pytest

from fleet_mpi.errors import UnknownName
from fleet_mpi.paddle import standing_in
from fleet_mpi.paddle.standing_in import Finder, named_in, our_name


@pytest.fixture
def stood_in():
    """``paddle`` is ours within the test."""
    before = set(sys.modules)
    finder = Finder()
    sys.meta_path.insert(0, finder)
    yield
    sys.meta_path.remove(finder)
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "paddle":
            del sys.modules[name]


@pytest.mark.parametrize("name, ours", (
    ("paddle", "fleet_mpi.paddle"), ("paddle.fluid", "fleet_mpi.fluid"), ("paddle.fluid.io", "fleet_mpi.fluid.io"),
    ("paddle.static.nn", "fleet_mpi.paddle.static.nn"), ("paddle.v2", "fleet_mpi.paddle.v2"),
    ("paddle.v2.dataset.mnist", "fleet_mpi.paddle.dataset.mnist"), ("paddle.v2.fluid.layers", "fleet_mpi.fluid.layers"),
    ("paddle.distributed.launch", "fleet_mpi.launch"),
    ("paddle.distributed.fleet", "fleet_mpi.paddle.distributed.fleet"),
    ("paddle.core", "fleet_mpi.fluid.core"), ("paddle.base", "fleet_mpi.fluid"),
    ("paddle.base.layers.nn", "fleet_mpi.fluid.layers.nn"),
    ("paddle.based", "fleet_mpi.paddle.based"), ("paddle.base.dygraph.base", "fleet_mpi.fluid.dygraph"),
    ("paddle.incubate.distributed.fleet.role_maker", "fleet_mpi.fluid.incubate.fleet.base.role_maker"),
    ("paddle.incubate.distributed.fleet.collective", "fleet_mpi.fluid.incubate.fleet.collective"),
    ("paddle.distributed.transpiler.details", "fleet_mpi.fluid.transpiler.details"),
    ("paddle.fluidity", "fleet_mpi.paddle.fluidity")))
def test_names_of_modules(name, ours):
    assert our_name(name) == ours


def test_modules_are_the_same_objects(stood_in):
    import paddle
    import paddle.fluid.layers
    import paddle.v2.fluid as oldest

    import fleet_mpi.fluid
    import fleet_mpi.paddle
    assert paddle is fleet_mpi.paddle and paddle.fluid.layers is fleet_mpi.fluid.layers
    assert oldest is fleet_mpi.fluid
    assert paddle.__name__ == "fleet_mpi.paddle" and paddle.__spec__.name == "fleet_mpi.paddle"


def test_the_data_folder_that_a_script_assigns_is_the_one_that_is_read(stood_in, monkeypatch):
    import paddle.dataset.common

    from fleet_mpi.data import home
    monkeypatch.setattr(paddle.dataset.common, "DATA_HOME", "/nowhere", raising=False)
    assert home.folder("mnist") == "/nowhere/mnist"


def test_an_unknown_module_says_the_nearest(stood_in):
    with pytest.raises(ModuleNotFoundError,
                       match="stands for 'paddle.fluid.layrs' .or not yet.; did you mean 'layers'"):
        import paddle.fluid.layrs
    with pytest.raises(ModuleNotFoundError, match="stands for 'paddle.quantum'"):
        import paddle.quantum  # noqa: F401


def test_an_import_error_is_explained_where_it_is_about_our_names(stood_in):
    with pytest.raises(ImportError) as caught:
        from paddle.fluid import Excutor  # noqa: F401
    assert "did you mean 'Executor'" in str(named_in(caught.value))
    with pytest.raises(ImportError) as caught:
        import paddle.fluid.layrs  # noqa: F401
    assert isinstance(named_in(caught.value), UnknownName)


@pytest.mark.parametrize("line", ("import no_such_package", "from json import no_such_name"))
def test_other_import_errors_are_left_alone(line):
    with pytest.raises(ImportError) as caught:
        exec(line, {})
    assert named_in(caught.value) is None


def test_standing_in_twice_is_standing_in_once(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    standing_in.stand_in()
    count = len(sys.meta_path)
    standing_in.stand_in()
    assert len(sys.meta_path) == count
