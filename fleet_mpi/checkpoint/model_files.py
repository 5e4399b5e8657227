"""``fluid.save`` / ``fluid.load``: a program's state under one path, in up to three files.

``<path>.pdparams`` has the parameters, ``<path>.pdopt`` what else persists (the optimizer's state), each in the
original's format for several tensors in one file; ``<path>.pdmodel`` the program itself.
"""

import os

from fleet_mpi.checkpoint.replacing import replacing
from fleet_mpi.checkpoint.saving import load_vars, save_vars
from fleet_mpi.checkpoint.variables import is_parameter, is_persistable
from fleet_mpi.errors import CheckpointDamaged, NotBuilt, UsageError


def save(program, model_path, protocol=None):
    """Write the three files; the second only where anything besides parameters persists."""
    folder, name = _split(model_path)
    whole = program if program._distribution is None else program._distribution.origin
    save_vars(None, folder, program, predicate=is_parameter, filename=name + ".pdparams")
    if any(_is_other(var) for var in whole.list_vars()):
        save_vars(None, folder, program, predicate=_is_other, filename=name + ".pdopt")
    with replacing(os.path.join(folder, name + ".pdmodel")) as stream:
        stream.write(whole.serialize_to_string())


def load(program, model_path, executor=None, var_list=None):
    """Read a program's state back; the program itself is not replaced."""
    if var_list is not None:
        raise NotBuilt("load: var_list is not built; save single variables with io.save_vars and load them with "
                       "io.load_vars")
    folder, name = _split(model_path)
    if not os.path.isfile(os.path.join(folder, name + ".pdparams")):
        raise CheckpointDamaged(f"{model_path}.pdparams: no such file; is {model_path!r} what save() was given?")
    load_vars(executor, folder, program, predicate=is_parameter, filename=name + ".pdparams")
    if any(_is_other(var) for var in program.list_vars()):
        load_vars(executor, folder, program, predicate=_is_other, filename=name + ".pdopt")


def _is_other(var):
    return is_persistable(var) and not is_parameter(var)


def _split(model_path):
    folder, name = os.path.split(model_path)
    if not name:
        raise UsageError(f"save, load: expected a path that ends with a name, got {model_path!r}")
    return folder or ".", name
