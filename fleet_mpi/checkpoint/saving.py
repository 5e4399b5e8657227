"""Every save: the values of a program, wherever they are, into the files of a folder, as one transaction.

A worker's program is saved whole, with what the servers have of it, in the files that one process writes. Every worker
that saves writes, where it was told; several that save the same state into one folder leave one save there. A server's
program is saved by its blocks. The first four functions are the calls of ``fluid.io``; ``save_all`` and ``save_model``
are for who has the values already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.checkpoint.folders.transaction import Author, saving_into
from fleet_mpi.checkpoint.models.inference_model import add_model, base_name, model_for
from fleet_mpi.checkpoint.resuming import note_runs
from fleet_mpi.checkpoint.values import of_program
from fleet_mpi.checkpoint.variables import choose, is_parameter, is_persistable, program_of
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.ranks.ending import amid
from fleet_mpi.runtime import collective_sessions, sessions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from fleet_mpi.checkpoint.values import Values
    from fleet_mpi.checkpoint.variables import AnyProgram, Predicate
    from fleet_mpi.program.engine.executor import Executor
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.program.graph.variable import Variable


def save_persistables(executor: Executor | None, dirname: str, main_program: AnyProgram = None,
                      filename: str | None = None) -> None:
    """Save every persistable variable: parameters, optimizer state, counters."""
    program = program_of(main_program)
    save_all(of_program(main_program, "saving"), dirname, filename,
             program if program._server is None else None, author_here())


def save_params(executor: Executor | None, dirname: str, main_program: AnyProgram = None,
                filename: str | None = None) -> None:
    """Save the parameters."""
    save_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def save_vars(executor: Executor | None, dirname: str, main_program: AnyProgram = None,
              vars: Iterable[Variable | str] | None = None, predicate: Predicate | None = None,
              filename: str | None = None) -> None:
    """Save some variables of a program: those listed, or those for which ``predicate(var)`` holds."""
    values = of_program(main_program, "saving")
    _save(values, dirname, values.choose(vars, predicate), filename, author=author_here())


def save_inference_model(dirname: str, feeded_var_names: str | Sequence[str],
                         target_vars: Variable | Sequence[Variable | str], executor: Executor | None,
                         main_program: AnyProgram = None, model_filename: str | None = None,
                         params_filename: str | None = None,
                         export_for_deployment: bool = True, program_only: bool = False) -> list[str]:
    """Save the part of a program that leads from the fed variables to the targets, and its parameters.

    Returns the names of the targets.
    """
    refuse_on_server(main_program, "save_inference_model")
    values = of_program(main_program, "save_inference_model")
    return save_model(values, dirname, feeded_var_names, target_vars, model_filename, params_filename, program_only)


def save_all(values: Values, dirname: str, filename: str | None = None, runs: Program | None = None,
             author: Author | None = None) -> None:
    """Save all that persists of a program.

    Args:
        runs: the program whose runs are counted, where random numbers are to go on after a load.
        author: the worker that saves, as one of several that may do so.
    """
    _save(values, dirname, values.choose(None, is_persistable), filename, runs, author)


@amid("a save")
def _save(values: Values, dirname: str, chosen: dict[str, Any], filename: str | None = None,
          runs: Program | None = None, author: Author | None = None) -> None:
    with saving_into(dirname, author) as save:
        with values.at_one_moment(chosen):
            values.add(save, chosen, filename)
        if runs is not None:
            note_runs(save, runs)


@amid("a save")
def save_model(values: Values, dirname: str, feeded_var_names: str | Sequence[str],
               target_vars: Variable | Sequence[Variable | str], model_filename: str | None = None,
               params_filename: str | None = None, program_only: bool = False) -> list[str]:
    """``save_inference_model`` of values."""
    pruned, content, names = model_for(feeded_var_names, target_vars, values.program)
    with saving_into(dirname, author_here()) as save:
        add_model(save, content, model_filename)
        if not program_only:
            chosen = choose(pruned, None, is_persistable)
            with values.at_one_moment(chosen):
                values.add(save, chosen, base_name(params_filename))
    return names


def author_here() -> Author | None:
    """This process as one of the workers of a job that may save into one folder; None where it is none yet."""
    session = sessions.session_of(global_scope())
    if session is not None:
        return Author(session.job, session.steps, session.client.index)
    session = collective_sessions.session_of(global_scope())
    if session is not None and session.group.job:
        return Author(session.group.job, session.steps, session.group.index)
    return None


def refuse_on_server(main_program: AnyProgram, what: str) -> None:
    """UsageError for a server's program: what it has are parts of variables."""
    if program_of(main_program)._server is not None:
        raise UsageError(f"{what}: a server has blocks of the program's variables, not the whole: call it on a worker, "
                         f"or save this server's blocks with save_persistables")
