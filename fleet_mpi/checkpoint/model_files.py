"""``fluid.save`` / ``fluid.load``: a program's state under one path, in up to three files.

``<path>.pdparams`` has the parameters, ``<path>.pdopt`` what else persists (the optimizer's state), each in the
original's format for several tensors in one file; ``<path>.pdmodel`` the program itself.
"""

import os

from fleet_mpi.checkpoint.resuming import note_runs
from fleet_mpi.checkpoint.saving import author_here, load_all, refuse_on_server, values_to_save
from fleet_mpi.checkpoint.sources import Source, is_other
from fleet_mpi.checkpoint.transaction import saving_into
from fleet_mpi.checkpoint.variables import is_parameter, program_of
from fleet_mpi.errors import NotBuilt, UsageError


def save(program, model_path, protocol=None):
    """Write the three files; the second only where anything besides parameters persists."""
    folder, name = _split(model_path)
    refuse_on_server(program, "save")
    values = values_to_save(program, "save")
    with saving_into(folder, author_here()) as save, values.at_one_moment():
        values.add(save, predicate=is_parameter, filename=name + ".pdparams")
        if any(is_other(var) for var in values.program.list_vars()):
            values.add(save, predicate=is_other, filename=name + ".pdopt")
        note_runs(save, program_of(program))
        with save.open(name + ".pdmodel") as stream:
            stream.write(values.program.serialize_to_string())


def load(program, model_path, executor=None, var_list=None):
    """Read a program's state back; the program itself is not replaced."""
    if var_list is not None:
        raise NotBuilt("load: var_list is not built; save single variables with io.save_vars and load them with "
                       "io.load_vars")
    folder, name = _split(model_path)
    load_all(Source(folder, (name + ".pdparams", name + ".pdopt")), program)


def _split(model_path):
    folder, name = os.path.split(model_path)
    if not name:
        raise UsageError(f"save, load: expected a path that ends with a name, got {model_path!r}")
    return folder or ".", name
