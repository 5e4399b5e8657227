"""``fluid.save`` / ``fluid.load``: a program's state under one path, in up to three files.

``<path>.pdparams`` has the parameters, ``<path>.pdopt`` what else persists (the optimizer's state), each in the
original's format for several tensors in one file; ``<path>.pdmodel`` the program itself.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet_mpi.checkpoint.folders.transaction import saving_into
from fleet_mpi.checkpoint.loading import load_all
from fleet_mpi.checkpoint.resuming import note_runs
from fleet_mpi.checkpoint.saving import author_here, refuse_on_server
from fleet_mpi.checkpoint.sources import Source
from fleet_mpi.checkpoint.values import of_program
from fleet_mpi.checkpoint.variables import is_other, is_parameter, program_of
from fleet_mpi.errors import NotBuilt, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.checkpoint.variables import AnyProgram
    from fleet_mpi.program.engine.executor import Executor
    from fleet_mpi.program.graph.variable import Variable


def save(program: AnyProgram, model_path: str, protocol: int | None = None) -> None:
    """Write the three files; the second only where anything besides parameters persists."""
    folder, name = _split(model_path)
    refuse_on_server(program, "save")
    values = of_program(program, "save")
    params, others = values.choose(None, is_parameter), values.choose(None, is_other)
    with saving_into(folder, author_here()) as save, values.at_one_moment({**params, **others}):
        values.add(save, params, name + ".pdparams")
        if others:
            values.add(save, others, name + ".pdopt")
        note_runs(save, program_of(program))
        with save.open(name + ".pdmodel") as stream:
            stream.write(values.program.serialize_to_string())


def load(program: AnyProgram, model_path: str, executor: Executor | None = None,
         var_list: Sequence[Variable] | None = None) -> None:
    """Read a program's state back; the program itself is not replaced."""
    if var_list is not None:
        raise NotBuilt("load: var_list is not built; save single variables with io.save_vars and load them with "
                       "io.load_vars")
    folder, name = _split(model_path)
    load_all(Source(folder, (name + ".pdparams", name + ".pdopt")), program)


def _split(model_path: str) -> tuple[str, str]:
    folder, name = os.path.split(model_path)
    if not name:
        raise UsageError(f"save, load: expected a path that ends with a name, got {model_path!r}")
    return folder or ".", name
