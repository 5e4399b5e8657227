"""Every name that scripts of tiers T0 and T1a use exists here, and takes the same arguments.

The facts are in ``tests/data/surface.json`` (see the README there); nothing of a script runs.
"""

import builtins
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

SURFACE = json.loads((Path(__file__).parents[1] / "data" / "surface.json").read_text())
SYMBOLS = {symbol["name"]: symbol for symbol in SURFACE["symbols"]}
CALLED = [name for name, symbol in SYMBOLS.items() if symbol["callable"]]
WITH_ARGUMENTS = [name for name, symbol in SYMBOLS.items() if symbol["arguments"]]

COLLECTIVE = "paddle.fluid.incubate.fleet.collective.fleet"
PSFLEET = "paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.fleet"
PSLIB = "paddle.fluid.incubate.fleet.parameter_server.pslib.fleet"
SINGLETONS = (COLLECTIVE, PSFLEET, PSLIB)

# (symbol, keyword) that a script gave but that is no argument of the symbol, with the reason.
NOT_ITS_KEYWORD = {
    ("paddle.distributed.fleet.base.role_maker.PaddleCloudRoleMaker", "is_collecitve"):
        "misspelt in the script",
    ("paddle.sum", "dim"): "belongs to the 1.x call wrapped around it",
    ("paddle.sum", "keep_dim"): "belongs to the 1.x call wrapped around it",
    ("paddle.fluid.layers.dropout", "input"): "belongs to the call wrapped around it",
    ("paddle.fluid.optimizer.Adam", "LARS_weight_decay"):
        "gone before 1.0, never an argument of the versions whose argument lists these are",
}

# Names whose list is of an older version than that of another name for the same class (`Momentum`,
# `fluid.ParamAttr`): the newer list has more arguments between, so only their order can be asked for.
ARGUMENTS_BETWEEN = {
    "paddle.fluid.optimizer.MomentumOptimizer",
    "paddle.fluid.optimizer.DGCMomentumOptimizer",
    "paddle.fluid.optimizer.LarsMomentumOptimizer",
    "paddle.fluid.param_attr.ParamAttr",
}

VARIABLE = ("paddle.fluid.Program().global_block()"
            ".create_var(name='x', shape=[1], dtype='float32')")
TENSOR = "paddle.fluid.LoDTensor()"
DATA = "paddle.fluid.layers.data(name='x', shape=[1])"

# What `X()` returns, where X is not a class that says so itself: a class, or how to make one of it.
OWNERS = {
    "paddle.compat.to_text()": "str",
    "paddle.compat.to_text().strip()": "str",
    "paddle.load()": "dict",
    "paddle.fluid.log_helper.get_logger()":
        "paddle.fluid.log_helper.get_logger('fleet_mpi.tests', 20)",
    "paddle.distributed.fleet.distributed_model()": "paddle.nn.Layer",
    "paddle.fluid.DatasetFactory().create_dataset()":
        "paddle.fluid.DatasetFactory().create_dataset()",
    "paddle.fluid.Program().global_block().vars": "paddle.fluid.Program().global_block().vars",
    "paddle.fluid.default_main_program()": "paddle.fluid.Program()",
    "paddle.fluid.default_main_program().global_block()": "paddle.fluid.Program().global_block()",
    "paddle.fluid.default_main_program().global_block().vars":
        "paddle.fluid.Program().global_block().vars",
    "paddle.fluid.default_startup_program()": "paddle.fluid.Program()",
    "paddle.static.default_main_program()": "paddle.fluid.Program()",
    "paddle.fluid.core.Scope().var()": "paddle.fluid.core.Scope().var('x')",
    "paddle.fluid.core.Scope().var().get_tensor()": TENSOR,
    "paddle.fluid.global_scope()": "paddle.fluid.core.Scope()",
    "paddle.fluid.global_scope().find_var()": "paddle.fluid.core.Scope().var('x')",
    "paddle.fluid.global_scope().find_var().get_tensor()": TENSOR,
    "paddle.fluid.global_scope().var()": "paddle.fluid.core.Scope().var('x')",
    "paddle.fluid.global_scope().var().get_tensor()": TENSOR,
    "paddle.static.global_scope()": "paddle.fluid.core.Scope()",
    "paddle.static.global_scope().find_var()": "paddle.fluid.core.Scope().var('x')",
    "paddle.static.global_scope().find_var().get_tensor()": TENSOR,
    "paddle.fluid.io.DataLoader.from_generator()":
        f"paddle.fluid.io.DataLoader.from_generator(feed_list=[{DATA}], capacity=2)",
    "paddle.io.DataLoader.from_generator()":
        f"paddle.io.DataLoader.from_generator(feed_list=[{DATA}], capacity=2)",
    "paddle.fluid.layers.create_py_reader_by_data()":
        f"paddle.fluid.layers.create_py_reader_by_data(capacity=2, feed_list=[{DATA}])",
    "paddle.fluid.layers.cast()": VARIABLE,
    "paddle.fluid.layers.concat()": VARIABLE,
    "paddle.fluid.layers.dropout()": VARIABLE,
    "paddle.fluid.layers.elementwise_mul()": VARIABLE,
    "paddle.fluid.layers.embedding()": VARIABLE,
    "paddle.fluid.layers.fc()": VARIABLE,
    "paddle.fluid.layers.mean()": VARIABLE,
    "paddle.fluid.layers.pool2d()": VARIABLE,
    "paddle.fluid.layers.reshape()": VARIABLE,
    "paddle.fluid.layers.transpose()": VARIABLE,
    "paddle.fluid.nets.simple_img_conv_pool()": VARIABLE,
    "paddle.mean()": VARIABLE,
    "paddle.metric.accuracy()": VARIABLE,
    "paddle.nn.functional.cross_entropy()": VARIABLE,
}

# Members that only a run can show: what fleet returns depends on the roles of a started job.
NEEDS_A_RUN = {
    "paddle.distributed.fleet.distributed_optimizer()",
    f"{COLLECTIVE}.distributed_optimizer()",
    f"{PSFLEET}.distributed_optimizer()",
    f"{PSLIB}.distributed_optimizer()",
}
CHECKED_MEMBERS = {member["name"]: member for member in SURFACE["members"]
                   if member["name"].rpartition(".")[0] not in NEEDS_A_RUN}

# Attributes that are None until fleet has run, but that are programs then.
PROGRAM_LATER = {f"{COLLECTIVE}.main_program", f"{COLLECTIVE}._origin_program"}


@pytest.mark.parametrize("name", [*SYMBOLS, *(item["name"] for item in SURFACE["imported"])])
def test_the_name_resolves(name):
    resolve(name)


@pytest.mark.parametrize("name", CALLED)
def test_what_the_original_lets_one_call_can_be_called(name):
    assert callable(resolve(name)), f"{name} is {resolve(name)!r}"


@pytest.mark.parametrize("name", WITH_ARGUMENTS)
def test_the_arguments_have_the_same_names_order_and_defaults(name):
    ours = positional_arguments(resolve(name))
    listed = [entry for entry in SYMBOLS[name]["arguments"] if not entry[0].startswith("*")]
    expected = [entry[0] for entry in listed]
    if name in ARGUMENTS_BETWEEN:
        got = [argument for argument in ours if argument in expected]
    else:
        got = list(ours)[:len(expected)]
    assert got == expected, f"{name}: expected arguments {expected}, got {list(ours)}"
    wrong = [f"{argument}={ours[argument].default!r}, expected {literal!r}"
             for argument, *default in listed for literal in default
             if not same_default(ours[argument].default, literal)]
    assert not wrong, f"{name}: " + "; ".join(wrong)


@pytest.mark.parametrize("name", [name for name, symbol in SYMBOLS.items() if symbol["keywords"]])
def test_the_keywords_that_scripts_give_are_taken(name):
    keywords = [keyword for keyword in SYMBOLS[name]["keywords"]
                if (name, keyword) not in NOT_ITS_KEYWORD]
    refused = refused_keywords(resolve(name), keywords, SYMBOLS[name]["arguments"])
    assert not refused, f"{name} does not take {refused}"


@pytest.mark.parametrize("name", [name for name, symbol in SYMBOLS.items() if symbol["positional"]])
def test_as_many_positional_arguments_as_scripts_give_are_taken(name):
    target = resolve(name)
    if target in vars(builtins).values():
        return  # Python's own types have no signature to look at
    kinds = [argument.kind for argument in inspect.signature(target).parameters.values()]
    taken = len(positional_arguments(target))
    assert inspect.Parameter.VAR_POSITIONAL in kinds or taken >= SYMBOLS[name]["positional"]


@pytest.mark.parametrize("name", CHECKED_MEMBERS)
def test_the_member_of_the_returned_value_exists(name):
    owner, _, member = name.rpartition(".")
    keywords = CHECKED_MEMBERS[name]["keywords"]
    found = getattr(returned_by(owner, member), member)
    if keywords and callable(found):
        assert not refused_keywords(found, keywords), f"{name} takes {inspect.signature(found)}"
    elif keywords:
        assert set(keywords) <= set(found), f"{name} has the keys {sorted(found)}"


def test_every_exception_is_about_something_in_the_data():
    owners = {member["name"].rpartition(".")[0] for member in SURFACE["members"]}
    assert all(keyword in SYMBOLS[name]["keywords"] for name, keyword in NOT_ITS_KEYWORD)
    assert ARGUMENTS_BETWEEN <= set(SYMBOLS)
    assert NEEDS_A_RUN | set(OWNERS) <= owners


def module_and_attribute(name):
    """How a script may import a name: the longest part that is a module in the original, and the rest."""
    parts = name.split(".")
    end = 1
    while (end < len(parts) - 1 and parts[end].islower()
           and ".".join(parts[:end + 1]) not in SINGLETONS
           and not (parts[end] == "core" and parts[end - 1] != "fluid")
           and parts[end] != "op_proto_and_checker_maker"):
        end += 1
    return ".".join(parts[:end]), parts[end]


IMPORTS = sorted({module_and_attribute(name) for name in SYMBOLS}
                 | {module_and_attribute(item["name"]) for item in SURFACE["imported"]
                    if "." in item["name"]})

SCRIPT = """
import importlib, json, sys
failed = {}
for module, attribute in json.loads(sys.argv[1]):
    try:
        importlib.import_module(module)
        exec(f"from {module} import {attribute}", {})
    except Exception as error:
        failed[f"{module}.{attribute}"] = repr(error)
with open(sys.argv[2], "w") as report:
    json.dump(failed, report)
"""


@pytest.fixture(scope="module")
def failed_imports(tmp_path_factory):
    """What could not be imported by a script under ``python -m fleet_mpi``, with the error."""
    folder = tmp_path_factory.mktemp("imports")
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "fleet_mpi", "script.py", json.dumps(IMPORTS), "report.json"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return json.loads((folder / "report.json").read_text())


@pytest.mark.parametrize("module, attribute", IMPORTS)
def test_a_script_imports_the_name_from_the_same_module(module, attribute, failed_imports):
    assert f"{module}.{attribute}" not in failed_imports, failed_imports[f"{module}.{attribute}"]


def resolve(name):
    """The object that ``name`` (of the form ``paddle.x.y``) stands for in this package."""
    found, path = importlib.import_module("fleet_mpi.paddle"), "paddle"
    for part in name.split(".")[1:]:
        if path in PROGRAM_LATER:
            found = resolve("paddle.fluid.Program")()
        path += "." + part
        found = attribute_of(found, part, path)
    return found


def attribute_of(owner, name, path):
    """Attribute or submodule ``name``; a property that asks for a started job counts as it stands."""
    try:
        return getattr(owner, name)
    except AttributeError:
        if not inspect.ismodule(owner):
            return inspect.getattr_static(owner, name)
        return importlib.import_module("fleet_mpi." + path)
    except Exception:
        return inspect.getattr_static(owner, name)


def positional_arguments(target):
    """The parameters that can be given by position, by name, in order."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {name: parameter for name, parameter in inspect.signature(target).parameters.items()
            if parameter.kind in kinds}


def refused_keywords(target, keywords, listed=None):
    """Which of the keywords the call would not take; ``**`` counts where the original has it too."""
    parameters = inspect.signature(target).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return []
    open_ended = any(entry[0].startswith("**") for entry in listed or ())
    return [keyword for keyword in keywords
            if keyword not in parameters and (keyword != "**" or open_ended)]


def same_default(ours, literal):
    """Whether a default equals the listed one; a tuple or None may stand for a mutable one."""
    if isinstance(literal, dict):
        return "expression" in literal or not ours
    if isinstance(literal, list):
        return list(ours) == literal
    return ours == literal and isinstance(ours, bool) == isinstance(literal, bool)


def returned_by(owner, member):
    """What ``owner`` (of the form ``X()``) returns, or its class if that has the method ``member``."""
    if owner in OWNERS:
        names = {"paddle": importlib.import_module("fleet_mpi.paddle"), **vars(builtins)}
        returned = eval(OWNERS[owner], names)
    else:
        returned = resolve(owner.removesuffix("()"))
        assert inspect.isclass(returned), f"say in OWNERS what {owner} returns"
    if inspect.isclass(returned) and not callable(getattr(returned, member, None)):
        return returned()
    return returned
