"""``fluid.save`` / ``fluid.load``: a program's state under one path, in up to three files.

``<path>.pdparams`` has the parameters, ``<path>.pdopt`` what else persists (the optimizer's state), each in the
original's format for several tensors in one file; ``<path>.pdmodel`` the program itself.
"""

import os

from fleet_mpi.checkpoint.resuming import note_runs, resuming_runs
from fleet_mpi.checkpoint.saved_files import read_settled
from fleet_mpi.checkpoint.saving import refuse_loading_to_servers, values_to_save
from fleet_mpi.checkpoint.transaction import saving_into
from fleet_mpi.checkpoint.variables import choose, is_parameter, is_persistable, program_of, put_values, values_of
from fleet_mpi.errors import CheckpointMissing, NotBuilt, UsageError
from fleet_mpi.program.scope import global_scope


def save(program, model_path, protocol=None):
    """Write the three files; the second only where anything besides parameters persists."""
    folder, name = _split(model_path)
    values = values_to_save(program, "save")
    if values is None:
        return
    with saving_into(folder) as save, values.at_one_moment():
        values.add(save, predicate=is_parameter, filename=name + ".pdparams")
        if any(_is_other(var) for var in values.program.list_vars()):
            values.add(save, predicate=_is_other, filename=name + ".pdopt")
        note_runs(save, program_of(program))
        with save.open(name + ".pdmodel") as stream:
            stream.write(values.program.serialize_to_string())


def load(program, model_path, executor=None, var_list=None):
    """Read a program's state back; the program itself is not replaced."""
    if var_list is not None:
        raise NotBuilt("load: var_list is not built; save single variables with io.save_vars and load them with "
                       "io.load_vars")
    folder, name = _split(model_path)
    refuse_loading_to_servers(program, predicate=is_persistable)
    params, others = (choose(program, None, predicate) for predicate in (is_parameter, _is_other))

    def read(files):
        if not files.has(name + ".pdparams"):
            raise CheckpointMissing(f"{model_path}.pdparams: no such file; is {model_path!r} what save() was given?")
        yield from values_of(files, params, name + ".pdparams", params)
        if others:
            yield from values_of(files, others, name + ".pdopt", others)
    names = [name + ".pdparams", name + ".pdopt"] if others else [name + ".pdparams"]
    with resuming_runs(program_of(program), folder, names):
        put_values(global_scope(), {**params, **others}, read_settled(folder, read), folder)


def _is_other(var):
    return is_persistable(var) and not is_parameter(var)


def _split(model_path):
    folder, name = os.path.split(model_path)
    if not name:
        raise UsageError(f"save, load: expected a path that ends with a name, got {model_path!r}")
    return folder or ".", name
