"""Saving and loading any program by the calls of ``fluid.io``: its values are in the scope, or on servers.

A worker's program is saved whole, with what the servers have of it, in the files that one process writes. The
workers' copies are the same thing, so worker 0 writes for all; others leave it to it.
"""

import contextlib

from fleet_mpi import notices, sessions
from fleet_mpi.checkpoint import distributed, inference_model, variables
from fleet_mpi.checkpoint.resuming import note_runs, resuming_runs
from fleet_mpi.checkpoint.saved_files import SavedFiles
from fleet_mpi.checkpoint.transaction import saving_into
from fleet_mpi.checkpoint.variables import choose, is_parameter, is_persistable, program_of
from fleet_mpi.errors import CheckpointMissing, UsageError
from fleet_mpi.parameter_server.whole import Whole
from fleet_mpi.program.scope import global_scope


def save_persistables(executor, dirname, main_program=None, filename=None):
    """Save every persistable variable: parameters, optimizer state, counters."""
    values = values_to_save(main_program, "saving")
    if values is not None:
        with saving_into(dirname) as save:
            values.add(save, predicate=is_persistable, filename=filename)
            note_runs(save, program_of(main_program))


def save_params(executor, dirname, main_program=None, filename=None):
    """Save the parameters."""
    save_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def save_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Save some variables of a program: those listed, or those for which ``predicate(var)`` holds."""
    values = values_to_save(main_program, "saving")
    if values is not None:
        with saving_into(dirname) as save:
            values.add(save, vars, predicate, filename)


def save_inference_model(dirname, feeded_var_names, target_vars, executor, main_program=None, model_filename=None,
                         params_filename=None, export_for_deployment=True, program_only=False):
    """Save the part of a program that leads from the fed variables to the targets, and its parameters.

    Returns the names of the targets.
    """
    distribution = _distribution(main_program)
    if distribution is None:
        return inference_model.save_inference_model(dirname, feeded_var_names, target_vars, executor, main_program,
                                                    model_filename, params_filename, export_for_deployment,
                                                    program_only)
    whole = whole_for_saving("save_inference_model")
    if whole is None:
        return inference_model.model_for(feeded_var_names, target_vars, distribution.origin)[2]
    return distributed.save_inference_model(whole, dirname, feeded_var_names, target_vars, distribution.origin,
                                            global_scope(), model_filename, params_filename, program_only)


def load_persistables(executor, dirname, main_program=None, filename=None):
    """Load what ``save_persistables`` wrote.

    With servers, worker 0 hands them theirs. The other workers take the servers' values as they are then, and from the
    folder what is not the servers', unless worker 0 is still about to write it.
    """
    distribution = _distribution(main_program)
    if distribution is None:
        variables.load_persistables(executor, dirname, main_program, filename)
        return
    session = connected("load_persistables")
    whole, counters = Whole(session.client), distribution.counters()
    names = [filename] if filename is not None else list(choose(distribution.origin, None, is_persistable))
    if session.client.index == 0:
        with resuming_runs(program_of(main_program), dirname, names):
            distributed.load_persistables(whole, dirname, distribution.origin, global_scope(), filename, counters)
    elif _is_written(dirname, filename, distribution, whole.contents.by_program_name(counters)):
        with resuming_runs(program_of(main_program), dirname, names):
            distributed.load_rest(whole.contents, dirname, distribution.origin, global_scope(), filename, counters)
    session.pull()


def load_params(executor, dirname, main_program=None, filename=None):
    """Load what ``save_params`` wrote."""
    load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Load some variables of a program; names every variable that is missing or does not fit."""
    refuse_loading_to_servers(main_program, vars, predicate)
    variables.load_vars(executor, dirname, main_program, vars, predicate, filename)


def refuse_loading_to_servers(main_program, vars=None, predicate=None):
    """UsageError where some of the variables meant are on servers."""
    distribution = _distribution(main_program)
    chosen = choose(main_program, vars, predicate) if distribution is not None else {}
    kept = sorted(name for name in chosen if name in distribution.recipes)
    if kept:
        raise UsageError(f"load_vars: {', '.join(kept[:5])} are on the servers: load all persistable variables together "
                         f"(load_persistables), or give init_server the folder")


class ScopeValues:
    """A program's values, where all of them are in the global scope."""

    def __init__(self, program):
        self.program = program

    def at_one_moment(self):
        """What is added within the block is of one moment."""
        return contextlib.nullcontext()

    def add(self, save, vars=None, predicate=None, filename=None):
        """Let a save have some variables."""
        variables.add_vars(save, choose(self.program, vars, predicate), filename)


class ServerValues:
    """A program's values, where the servers have some of them."""

    def __init__(self, whole, distribution):
        self.whole, self.distribution = whole, distribution
        self.program = distribution.origin

    def at_one_moment(self):
        """Within the block the servers stand still."""
        return self.whole.frozen()

    def add(self, save, vars=None, predicate=None, filename=None):
        """Let a save have some variables."""
        chosen = choose(self.program, None, _chooser(vars, predicate))
        distributed.add_vars(save, self.whole, chosen, global_scope(), filename, self.distribution.counters())


def values_to_save(main_program, what):
    """The values of a program, to be added to a save; None on the workers that leave saving to worker 0."""
    distribution = _distribution(main_program)
    if distribution is None:
        return ScopeValues(main_program)
    whole = whole_for_saving(what)
    return None if whole is None else ServerValues(whole, distribution)


def connected(what):
    """The session of the global scope, with all that was pushed applied; UsageError where there is none."""
    session = sessions.session_of(global_scope())
    if session is None or session.is_over:
        raise UsageError(f"{what}: this worker is not connected to the servers: call it after the startup program (or "
                         f"init_worker), and before stop_worker or exe.close")
    session.flush()
    return session


def whole_for_saving(what):
    """The servers' variables; None on the workers that leave saving to worker 0."""
    session = connected(what)
    if session.client.index == 0:
        return Whole(session.client)
    notices.once(what, f"{what}: worker {session.client.index} leaves it to worker 0")
    return None


def _distribution(main_program):
    """How a program is spread over servers; None where it is not."""
    return program_of(main_program)._distribution


def _is_written(dirname, filename, distribution, kept):
    """Whether a folder has all that is not the servers' of a program."""
    own = [name for name in choose(distribution.origin, None, is_persistable) if name not in kept]
    try:
        files = SavedFiles(dirname)
    except CheckpointMissing:
        return False  # the folder itself is still to be made
    return all(files.has(name) for name in ([filename] if filename else own))


def _chooser(vars, predicate):
    """The predicate that means the variables listed, or the one given."""
    if vars is None:
        return predicate or is_persistable
    names = {getattr(var, "name", var) for var in vars}
    return lambda var: var.name in names
