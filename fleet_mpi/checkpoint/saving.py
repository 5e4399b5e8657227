"""Saving and loading any program by the calls of ``fluid.io``: its values are in the scope, or on servers.

A worker's program is saved whole, with what the servers have of it, in the files that one process writes. Every worker
that saves writes, where it was told; several that save the same state into one folder leave one save there. A server's
program is saved and loaded by its blocks (``block_values``).
"""

import contextlib

from fleet_mpi import notices
from fleet_mpi.checkpoint import distributed, inference_model, variables
from fleet_mpi.checkpoint.block_values import BlockValues
from fleet_mpi.checkpoint.resuming import note_runs, resuming_runs
from fleet_mpi.checkpoint.sources import Source
from fleet_mpi.checkpoint.transaction import Author, saving_into
from fleet_mpi.checkpoint.variables import choose, is_parameter, is_persistable, program_of
from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server.state import Inventory, ServerState
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.runtime import collective_sessions as collective_session, sessions


def save_persistables(executor, dirname, main_program=None, filename=None):
    """Save every persistable variable: parameters, optimizer state, counters."""
    values = values_to_save(main_program, "saving")
    with saving_into(dirname, author_here()) as save:
        values.add(save, predicate=is_persistable, filename=filename)
        if program_of(main_program)._server is None:
            note_runs(save, program_of(main_program))


def save_params(executor, dirname, main_program=None, filename=None):
    """Save the parameters."""
    save_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def save_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Save some variables of a program: those listed, or those for which ``predicate(var)`` holds."""
    values = values_to_save(main_program, "saving")
    with saving_into(dirname, author_here()) as save:
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
                                                    program_only, author_here())
    refuse_on_server(main_program, "save_inference_model")
    whole = ServerState(connected("save_inference_model").client)
    return distributed.save_inference_model(whole, dirname, feeded_var_names, target_vars, distribution.origin,
                                            global_scope(), model_filename, params_filename, program_only,
                                            author_here())


def load_persistables(executor, dirname, main_program=None, filename=None):
    """Load what ``save_persistables`` wrote."""
    load_all(Source(dirname, [filename] if filename is not None else ()), main_program)


def load_all(source, main_program):
    """Let a program have all that persists of it.

    With servers, worker 0 hands them theirs. The other workers take the servers' values as they are then, and from the
    files what is not the servers', unless worker 0 is still about to write it. A server that does not serve yet takes
    its blocks.
    """
    program = program_of(main_program)
    if program._server is not None:
        BlockValues(program._distribution, program._server, global_scope()).load(source)
    elif program._distribution is not None:
        _load_to_servers(source, program, program._distribution)
    else:
        with resuming_runs(program, source.folder, source.names(program)):
            chosen = choose(program, None, is_persistable)
            variables.put_values(global_scope(), chosen, source.read(program, chosen), source.folder)


def _load_to_servers(source, program, distribution):
    session = connected("load_persistables")
    whole, origin, counters = ServerState(session.client), distribution.origin, distribution.counters()

    def read(names):
        return source.read(origin, names)
    if session.client.index == 0:
        with resuming_runs(program, source.folder, source.names(origin)):
            distributed.load_persistables(whole, source.folder, origin, global_scope(), read, counters)
    elif source.has(origin, distributed.rest_of(whole.inventory, origin, counters)):
        with resuming_runs(program, source.folder, source.names(origin)):
            distributed.load_rest(whole.inventory, source.folder, origin, global_scope(), read, counters)
    session.pull(with_rest=False)


def load_params(executor, dirname, main_program=None, filename=None):
    """Load what ``save_params`` wrote."""
    load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Load some variables of a program; names every variable that is missing or does not fit."""
    program = program_of(main_program)
    if program._server is not None:
        values = BlockValues(program._distribution, program._server, global_scope())
        values.load(Source(dirname, [filename] if filename is not None else ()), vars, predicate)
        return
    _refuse_loading_to_servers(main_program, vars, predicate)
    variables.load_vars(executor, dirname, main_program, vars, predicate, filename)


def _refuse_loading_to_servers(main_program, vars=None, predicate=None):
    """UsageError where some of the variables meant are on servers."""
    distribution = _distribution(main_program)
    chosen = choose(main_program, vars, predicate) if distribution is not None else {}
    kept = sorted(name for name in chosen if name in distribution.recipes)
    if kept:
        raise UsageError(f"load_vars: {', '.join(kept[:5])} are on the servers: load all persistable variables "
                         f"together (load_persistables), or give init_server the folder")


def load_rest(distribution, told, scope):
    """A worker's: take what it keeps itself (statistics of batch normalisation) from where the servers loaded
    theirs."""
    source, origin, counters = Source(*told), distribution.origin, distribution.counters()
    contents = Inventory(sessions.describe(distribution))
    rest = distributed.rest_of(contents, origin, counters)
    if not any(source.has(origin, [name]) for name in rest):
        if rest:
            notices.log().warning("the servers loaded %s, where this worker finds nothing of what is not on the "
                                  "servers: %s start anew here", source.folder, ", ".join(rest[:5]))
        return
    with resuming_runs(distribution.program, source.folder, source.names(origin), scope):
        distributed.load_rest(contents, source.folder, origin, scope, lambda names: source.read(origin, names),
                              counters)


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
        """What is added within the block is of one moment."""
        return self.whole.copied(self.whole.inventory.by_program_name(self.distribution.counters()).values())

    def add(self, save, vars=None, predicate=None, filename=None):
        """Let a save have some variables."""
        chosen = choose(self.program, None, _chooser(vars, predicate))
        distributed.add_vars(save, self.whole, chosen, global_scope(), filename, self.distribution.counters())


def values_to_save(main_program, what):
    """The values of a program, to be added to a save."""
    program, distribution = program_of(main_program), _distribution(main_program)
    if distribution is None:
        return ScopeValues(program)
    if program._server is not None:
        return BlockValues(distribution, program._server, global_scope())
    return ServerValues(ServerState(connected(what).client), distribution)


def connected(what):
    """The session of the global scope, with all that was pushed applied; UsageError where there is none."""
    session = sessions.session_of(global_scope())
    if session is None or session.is_over:
        raise UsageError(f"{what}: this worker is not connected to the servers: call it after the startup program (or "
                         f"init_worker), and before stop_worker or exe.close")
    session.flush()
    return session


def author_here():
    """This process as one of the workers of a job that may save into one folder; None where it is none yet."""
    session = sessions.session_of(global_scope())
    if session is not None:
        return Author(session.job, session.steps, session.client.index)
    session = collective_session.session_of(global_scope())
    if session is not None and session.group.job:
        return Author(session.group.job, session.steps, session.group.index)
    return None


def refuse_on_server(main_program, what):
    """UsageError for a server's program: what it has are parts of variables."""
    if program_of(main_program)._server is not None:
        raise UsageError(f"{what}: a server has blocks of the program's variables, not the whole: call it on a worker, "
                         f"or save this server's blocks with save_persistables")


def _distribution(main_program):
    """How a program is spread over servers; None where it is not."""
    return program_of(main_program)._distribution


def _chooser(vars, predicate):
    """The predicate that means the variables listed, or the one given."""
    if vars is None:
        return predicate or is_persistable
    names = {getattr(var, "name", var) for var in vars}
    return lambda var: var.name in names
