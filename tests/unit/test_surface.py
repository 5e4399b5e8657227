"""Every name that scripts of all tiers use exists here, and takes the same arguments.

The facts are in ``tests/data/surface.json`` and ``surface2.json`` (see the README there); nothing of a script runs.
"""

import builtins
import inspect
import json
import subprocess
import sys

import pytest

from tests.unit.fluid.surface_names import (
    ABSENT,
    COLLECTIVE,
    OWNERS,
    PSFLEET,
    PSLIB,
    is_here,
    module_and_attribute,
    positional_arguments,
    refusal_of,
    refused_keywords,
    resolve,
    returned_by,
    same_default,
    surface,
)

SURFACE = surface()
SYMBOLS = {symbol["name"]: symbol for symbol in SURFACE["symbols"] if is_here(symbol["name"])}
CALLED = [name for name, symbol in SYMBOLS.items() if symbol["callable"]]
WITH_ARGUMENTS = [name for name, symbol in SYMBOLS.items() if symbol["arguments"]]

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

# Members that only a run can show: what fleet returns depends on the roles of a started job.
NEEDS_A_RUN = {
    "paddle.distributed.fleet.distributed_optimizer()",
    f"{COLLECTIVE}.distributed_optimizer()",
    f"{PSFLEET}.distributed_optimizer()",
    f"{PSLIB}.distributed_optimizer()",
    "paddle.distributed.fleet.fleet.distributed_optimizer()",
    "paddle.incubate.distributed.fleet.parameter_server.distribute_transpiler.fleet.distributed_optimizer()",
    "paddle.incubate.distributed.fleet.parameter_server.pslib.fleet.distributed_optimizer()",
}


def is_made(owner):
    """Whether what a member belongs to can be made here: it is neither to be shown by a run, nor refused."""
    made = owner.partition("()")[0]
    return owner not in NEEDS_A_RUN and is_here(made) and refusal_of(made) is None


CHECKED_MEMBERS = {member["name"]: member for member in SURFACE["members"] if member["name"] not in ABSENT
                   and "_finalize_strategy_and_create_passes()" not in member["name"]
                   and is_made(member["name"].rpartition(".")[0])}


@pytest.mark.parametrize("name", [*SYMBOLS, *(item["name"] for item in SURFACE["imported"] if is_here(item["name"]))])
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


IMPORTS = sorted({module_and_attribute(name) for name in SYMBOLS if not name.startswith("paddle.paddle.")}
                 | {module_and_attribute(item["name"]) for item in SURFACE["imported"]
                    if "." in item["name"] and is_here(item["name"])})

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
