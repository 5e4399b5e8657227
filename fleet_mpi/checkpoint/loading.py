"""Every load: what was saved becomes the values of a program, in the scope, on the servers or in a server's blocks.

The first three functions are the calls of ``fluid.io``. All is read and checked before anything is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi import notices
from fleet_mpi.checkpoint.resuming import resuming_runs
from fleet_mpi.checkpoint.sources import Chosen, Source, read_values
from fleet_mpi.checkpoint.values.blocks import BlockValues
from fleet_mpi.checkpoint.values.growing import by_program_name
from fleet_mpi.checkpoint.values.scope import put_values
from fleet_mpi.checkpoint.values.servers import ServerValues, connected, load_rest as _load_rest, rest_of
from fleet_mpi.checkpoint.variables import choose, is_parameter, is_persistable, program_of
from fleet_mpi.parameter_server.description import Inventory
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.runtime import sessions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet_mpi.checkpoint.variables import AnyProgram, Predicate
    from fleet_mpi.parameter_server.description import LoadedFrom
    from fleet_mpi.program.engine.executor import Executor
    from fleet_mpi.program.engine.scope import Scope
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.program.graph.variable import Variable
    from fleet_mpi.transpile.distribution import Distribution


def load_persistables(executor: Executor | None, dirname: str, main_program: AnyProgram = None,
                      filename: str | None = None) -> None:
    """Load what ``save_persistables`` wrote."""
    load_all(_source(dirname, filename), main_program)


def load_params(executor: Executor | None, dirname: str, main_program: AnyProgram = None,
                filename: str | None = None) -> None:
    """Load what ``save_params`` wrote."""
    load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def load_vars(executor: Executor | None, dirname: str, main_program: AnyProgram = None,
              vars: Iterable[Variable | str] | None = None, predicate: Predicate | None = None,
              filename: str | None = None) -> None:
    """Load some variables of a program; names every variable that is missing or does not fit.

    What is on servers goes there, through worker 0, as in ``load_persistables``: all workers call this.
    """
    program = program_of(main_program)
    if program._server is not None:
        values = BlockValues(program._distribution, program._server, global_scope())
        values.load(_source(dirname, filename), vars, predicate)
        return
    if program._distribution is not None:
        chosen = _meant(program, program._distribution.origin, vars, predicate)
        _load_chosen(Chosen(dirname, filename, chosen), program, program._distribution)
        return
    chosen = choose(program, vars, predicate)
    put_values(global_scope(), chosen, read_values(dirname, chosen, filename, chosen), dirname)


def load_all(source: Source, main_program: AnyProgram = None, runs: Program | None = None) -> None:
    """Let a program have all that persists of it; ``runs`` is what runs, where it is not the program itself.

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
        with resuming_runs(runs or program, source.folder, source.names(program)):
            chosen = choose(program, None, is_persistable)
            put_values(global_scope(), chosen, source.read(program, chosen), source.folder)


def load_rest(distribution: Distribution, told: LoadedFrom, scope: Scope) -> None:
    """A worker's: take what it keeps itself (statistics of batch normalisation) from where the servers loaded
    theirs."""
    source, origin, counters = Source(*told), distribution.origin, distribution.counters()
    inventory = Inventory(sessions.describe(distribution))
    rest = rest_of(inventory, origin, counters)
    if not any(source.has(origin, [name]) for name in rest):
        if rest:
            notices.log().warning("the servers loaded %s, where this worker finds nothing of what is not on the "
                                  "servers: %s start anew here", source.folder, ", ".join(rest[:5]))
        return
    assert distribution.program is not None   # a worker has one
    with resuming_runs(distribution.program, source.folder, source.names(origin), scope):
        _load_rest(inventory, source, origin, scope, counters)


def _load_to_servers(source: Source, program: Program, distribution: Distribution) -> None:
    session = connected("load_persistables")
    values = ServerValues(ServerState(session.client), distribution)
    names = source.names(values.program)
    if session.client.index == 0:
        with resuming_runs(program, source.folder, names):
            values.load(source)
    elif source.has(values.program, values.rest()):
        with resuming_runs(program, source.folder, names):
            values.load_rest(source)
    session.pull(with_rest=False)


def _load_chosen(source: Chosen, program: Program, distribution: Distribution) -> None:
    """Where servers keep some of what is chosen, these have it through worker 0, as with all that persists."""
    keys = by_program_name(Inventory(sessions.describe(distribution)), distribution.counters())
    if not keys.keys() & source.chosen.keys():
        put_values(global_scope(), source.chosen, source.read(program, source.chosen), source.folder)
        return
    session = connected("load_vars")
    values = ServerValues(ServerState(session.client), distribution)
    if session.client.index == 0:
        values.load(source, source.chosen)
    else:
        rest = [name for name in source.chosen if name not in keys]
        if source.has(values.program, rest):
            values.load_rest(source, source.chosen)
    session.pull(with_rest=False)


def _meant(program: Program, origin: Program, vars: Iterable[Variable | str] | None,
           predicate: Predicate | None) -> dict[str, Variable]:
    """The variables that a load means: those of the whole program, and by name those that a worker's has besides."""
    if vars is None:
        return choose(origin, None, predicate)
    whole = origin.global_block().vars
    return choose(program, [whole.get(getattr(one, "name", one), one) for one in vars], None)


def _source(dirname: str, filename: str | None) -> Source:
    return Source(dirname, [filename] if filename is not None else ())
