"""The names that scripts use, as ``tests/data`` lists them, and how they are found in this package.

Shared by the tests of the surface; nothing of a script runs.
"""

import builtins
import importlib
import inspect
import json
from pathlib import Path

LISTS = Path(__file__).parents[2] / "data"
TIERS = ("T0", "T1a", "T1b", "T2", "documented")


# Names of the list that are not here, with the reason.
_INNER = "of the original's own inner workings; means nothing here"
ABSENT = {
    "paddle.distributed.fleet.util.get_user_id": "the script's own: it puts an object with this method in the place of "
                                                 "util",
    "paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.fleet._transpile": _INNER,
    "paddle.fluid.incubate.fleet.parameter_server.pslib.FLEET_GLOBAL_DICT": _INNER,
    "paddle.fluid.incubate.fleet.parameter_server.pslib._prepare_params": _INNER,
    # Members of what is returned.
    "paddle.fluid.incubate.fleet.base.role_maker.GeneralRoleMaker()._GeneralRoleMaker__start_kv_server": _INNER,
    "paddle.fluid.incubate.fleet.base.role_maker.GeneralRoleMaker()._all_comm.init": _INNER,
    "paddle.optimizer.SGD().amp_init": "of what decorate makes of the optimizer under the same name",
    "paddle.distributed.InMemoryDataset()._set_use_ps_gpu": "tables in GPU memory are not built",
}


def is_here(name):
    """Whether a name is to be asked for: all but those that are absent for a reason."""
    return name not in ABSENT


def refusal_of(name):
    """The sentence with which the use of a name is refused, None where it is not."""
    return getattr(resolve(name), "sentence", None)


def surface():
    """{"symbols", "members", "imported"} of both lists, each a list of records."""
    parts = [json.loads((LISTS / name).read_text()) for name in ("surface.json", "surface2.json")]
    return {kind: [record for part in parts for record in part[kind]] for kind in parts[0]}


COLLECTIVE = "paddle.fluid.incubate.fleet.collective.fleet"
PSFLEET = "paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.fleet"
PSLIB = "paddle.fluid.incubate.fleet.parameter_server.pslib.fleet"
_LATEST = "paddle.incubate.distributed.fleet"
SINGLETONS = (COLLECTIVE, PSFLEET, PSLIB, "paddle.distributed.fleet.fleet", "paddle.distributed.fleet.util",
              f"{_LATEST}.collective.fleet", f"{_LATEST}.parameter_server.distribute_transpiler.fleet",
              f"{_LATEST}.parameter_server.pslib.fleet")

VARIABLE = ("paddle.fluid.Program().global_block()"
            ".create_var(name='x', shape=[1], dtype='float32')")
TENSOR = "paddle.fluid.LoDTensor()"
DATA = "paddle.fluid.layers.data(name='x', shape=[1])"

# What `X()` returns, where X is not a class that says so itself: a class, or how to make one of it.
OWNERS = {
    "paddle.base.default_main_program()": "paddle.fluid.Program()",
    "paddle.base.default_main_program().global_block()": "paddle.fluid.Program().global_block()",
    "paddle.base.default_startup_program()": "paddle.fluid.Program()",
    "paddle.fluid.default_startup_program().clone()": "paddle.fluid.Program()",
    "paddle.fluid.Program().clone()": "paddle.fluid.Program()",
    "paddle.fluid.Program().clone().global_block()": "paddle.fluid.Program().global_block()",
    "paddle.fluid.Program().global_block()": "paddle.fluid.Program().global_block()",
    "paddle.fluid.framework.default_main_program()": "paddle.fluid.Program()",
    "paddle.fluid.framework.default_main_program().global_block()": "paddle.fluid.Program().global_block()",
    f"{COLLECTIVE}._origin_program.global_block().vars": "paddle.fluid.Program().global_block().vars",
    "paddle.distributed.fleet._final_strategy()": "paddle.distributed.fleet.DistributedStrategy()",
    "paddle.fluid.incubate.fleet.collective.DistributedStrategy().exec_strategy":
        "paddle.fluid.incubate.fleet.collective.DistributedStrategy().exec_strategy",
    "paddle.base.DatasetFactory().create_dataset()":
        "paddle.fluid.DatasetFactory().create_dataset('InMemoryDataset')",
    "paddle.dataset.imdb.word_dict()": "dict",
    "paddle.fluid.CompiledProgram()": "paddle.fluid.CompiledProgram(paddle.fluid.Program())",
    "paddle.fluid.compiler.CompiledProgram()": "paddle.fluid.CompiledProgram(paddle.fluid.Program())",
    "paddle.compat.to_text()": "str",
    "paddle.compat.to_text().strip()": "str",
    "paddle.load()": "dict",
    "paddle.fluid.log_helper.get_logger()":
        "paddle.fluid.log_helper.get_logger('fleet_mpi.tests', 20)",
    "paddle.distributed.fleet.distributed_model()": "paddle.nn.Layer",
    "paddle.fluid.DatasetFactory().create_dataset()":
        "paddle.fluid.DatasetFactory().create_dataset('InMemoryDataset')",
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
    "paddle.concat()": VARIABLE,
    "paddle.fluid.layers.data()": VARIABLE,
    "paddle.fluid.layers.fill_constant_batch_size_like()": VARIABLE,
    "paddle.fluid.layers.mean().block": "paddle.fluid.Program().global_block()",
    "paddle.static.data().desc": f"{VARIABLE}.desc",
    "paddle.static.nn.embedding()": VARIABLE,
    "paddle.static.nn.fc()": VARIABLE,
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

# Attributes that are None until fleet has run, but that are programs then.
PROGRAM_LATER = {f"{COLLECTIVE}.main_program", f"{COLLECTIVE}._origin_program"}


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


def resolve(name):
    """The object that ``name`` (of the form ``paddle.x.y``) stands for in this package."""
    found, path = importlib.import_module("fleet_mpi.paddle"), "paddle"
    for part in name.split(".")[1:]:
        if path in PROGRAM_LATER:
            found = resolve("paddle.fluid.Program")()
        if path == f"{PSLIB}._role_maker":  # None until the fleet has taken a role
            found = resolve("paddle.fluid.incubate.fleet.base.role_maker.RoleMakerBase")
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
