"""The modules of names: nothing but names, each refusing what it does not have."""

import ast
import importlib
import inspect
import types
from pathlib import Path

import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UnknownName

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "fleet_mpi" / "fluid").rglob("*.py")) + sorted((ROOT / "fleet_mpi" / "paddle").rglob("*.py"))
# These do work of their own: some make ``paddle`` and modules below it mean this package's, one has tables for the
# others, one stands for a module of ``data``.
NOT_NAMES = {"fleet_mpi.paddle.standing_in", "fleet_mpi.paddle.function_modules", "fleet_mpi.fluid.refused_modules",
             "fleet_mpi.paddle.of_1x", "fleet_mpi.paddle.dataset.common"}
LONGEST_ADAPTER = 12


def module_name(path):
    """``fleet_mpi.fluid.io`` from a path."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = [path for path in FILES if module_name(path) not in NOT_NAMES]


@pytest.mark.parametrize("path", NAMES, ids=module_name)
def test_an_unknown_name_is_refused_under_the_name_scripts_use(path):
    module = importlib.import_module(module_name(path))
    public = module.__name__.replace("fleet_mpi.fluid", "paddle.fluid").replace("fleet_mpi.paddle", "paddle")
    with pytest.raises(UnknownName, match=f"^{public} has no 'no_such_name'"):
        module.no_such_name
    assert not hasattr(module, "no_such_name")


@pytest.mark.parametrize("path", NAMES, ids=module_name)
def test_a_module_of_names_computes_nothing(path):
    tree = ast.parse(path.read_text())
    long = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
            and node.end_lineno - node.lineno >= LONGEST_ADAPTER]
    loops = [node.lineno for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While))]
    arrays = [node.lineno for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))
              and {getattr(node, "module", None), *(alias.name for alias in node.names)} & {"numpy"}]
    assert (long, loops, arrays) == ([], [], [])


@pytest.mark.parametrize("path", NAMES, ids=module_name)
def test_no_name_comes_by_accident(path):
    stars = [node.lineno for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
             and any(alias.name == "*" for alias in node.names)]
    module = importlib.import_module(module_name(path))
    foreign = {name for name, value in vars(module).items() if isinstance(value, types.ModuleType)
               and not name.startswith("_") and not value.__name__.startswith("fleet_mpi")}
    assert not stars and foreign <= {"logging", "os", "sys"}
    assert "missing_name" not in vars(module)


def test_the_same_object_is_reached_by_every_path():
    from fleet_mpi import paddle
    assert fluid.Executor is fluid.executor.Executor is paddle.static.Executor
    assert fluid.ParamAttr is fluid.param_attr.ParamAttr and issubclass(paddle.ParamAttr, fluid.ParamAttr)
    assert fluid.core.EOFException is paddle.core.EOFException is paddle.common_ops_import.core.EOFException
    assert fluid.DistributeTranspilerConfig is fluid.transpiler.distribute_transpiler.DistributeTranspilerConfig
    assert fluid.layers.cast is fluid.layers.tensor.cast and fluid.layers.fc is fluid.layers.nn.fc
    assert fluid.optimizer.SGD is fluid.optimizer.SGDOptimizer
    assert fluid.regularizer.L2Decay is fluid.regularizer.L2DecayRegularizer


def test_a_layer_is_the_layer_of_its_family():
    wrong = [name for name, value in vars(fluid.layers).items()
             if inspect.isfunction(value) and not name.startswith("_")
             and not value.__module__.startswith(("fleet_mpi.program.", "fleet_mpi.data.", "fleet_mpi.checkpoint."))]
    assert not wrong


def test_eager_mode_is_off():
    assert fluid.in_dygraph_mode() is False


def test_roles_and_kinds_have_the_names_of_the_compiled_half():
    core = fluid.core
    assert core.op_proto_and_checker_maker.kOpRoleAttrName() == "op_role"
    assert int(core.op_proto_and_checker_maker.OpRole.Backward) == 1
    assert core.VarDesc.VarType.FP32 == "float32"
    with pytest.raises(NotImplementedError, match="tables in GPU memory"):
        core.PSGPU().init_gpu_ps([0])
