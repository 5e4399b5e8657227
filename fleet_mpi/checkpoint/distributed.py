"""Saving and loading a training whose parameters are on servers, in the files that one process writes and reads.

Files have the names of the untranspiled program, and its whole shapes: another number of servers, another way to
cut, or one process can load them. Parameters, optimizer states and the counters of schedules are the servers', all
of one moment; what else persists (statistics of batch normalisation, rates that workers set) is the saving worker's.
Which rank saves is decided above.
"""

import functools

import numpy as np

from fleet_mpi.checkpoint import variables
from fleet_mpi.checkpoint.inference_model import add_model, base_name, model_for
from fleet_mpi.checkpoint.resuming import note_runs
from fleet_mpi.checkpoint.transaction import saving_into
from fleet_mpi.checkpoint.variables import choose, is_persistable
from fleet_mpi.errors import CheckpointDamaged
from fleet_mpi.ranks.ending import amid


@amid("a save")
def save_vars(whole, dirname, program, scope, predicate=is_persistable, filename=None, counters=(), runs=None,
              author=None):
    """Save variables of the untranspiled program from the servers and from a worker's scope.

    The servers are frozen while they copy their shards. Old files are replaced when all values are written.

    Args:
        whole: the worker's ``ServerState``; none of its client's pushes may be under way.
        counters: the persistable variables that the servers' schedules keep.
        runs: the worker's program, where its runs are to be counted: all that persists is saved.
        author: the worker that saves, as one of several that may do so.
    """
    with saving_into(dirname, author) as save:
        add_vars(save, whole, choose(program, None, predicate), scope, filename, counters)
        if runs is not None:
            note_runs(save, runs)


def add_vars(save, whole, chosen, scope, filename=None, counters=()):
    """Let a save have variables, from the servers, as of one moment, and from a worker's scope."""
    kept = whole.inventory.by_program_name(counters)
    mine = {name: variables.value_in(scope, name) for name in chosen if name not in kept}

    keys = [kept[name] for name in chosen if name in kept]

    def values():
        fetched = whole.fetch_all(keys)
        for name in chosen:
            if name in kept:
                array = next(fetched)
                save.has(array)
                yield name, array, ()
            else:
                yield name, mine[name].array, mine[name].lod_offsets
    with whole.copied(keys):
        variables.write_values(save, values(), filename)


@amid("a save")
def save_inference_model(whole, dirname, feeded_var_names, target_vars, program, scope, model_filename=None,
                         params_filename=None, program_only=False, author=None):
    """Save the part of the untranspiled program that leads from the fed variables to the targets, and its parameters.

    Returns the names of the targets.
    """
    pruned, content, names = model_for(feeded_var_names, target_vars, program)
    with saving_into(dirname, author) as save:
        add_model(save, content, model_filename)
        if not program_only:
            add_vars(save, whole, choose(pruned, None, is_persistable), scope, base_name(params_filename))
    return names


@amid("a load")
def load_persistables(whole, dirname, program, scope, read, counters=()):
    """Let the servers, which are running, and a worker's scope have what was saved. For one worker to call.

    ``read(names)`` gives (name, array, lod) tuples of these variables, as often as it is called.
    """
    kept = whole.inventory.by_program_name(counters)
    chosen = choose(program, None, is_persistable)
    mine = [name for name in chosen if name in kept]
    # All is looked at before anything is changed; the files are read a second time for that, not kept in memory.
    variables.refuse_differences(dirname, {
        name: list(variables.differences(name, tuple(chosen[name].shape), chosen[name]._dtype, array))
        for name, array, _ in read(mine)})
    load_rest(whole.inventory, dirname, program, scope, read, counters)
    stored = {}
    with whole.frozen(alone=True):
        for name, array, _ in read(mine):
            whole.store(kept[name], array)
            if kept[name].kind == "state" and array.size == 1:
                stored[name] = array, functools.partial(whole.fetch, kept[name])
        _check_numbers(dirname, stored)


def load_rest(contents, dirname, program, scope, read, counters=()):
    """Let a worker's scope have what is not the servers'; ``contents`` is ``Inventory(description)``."""
    chosen = choose(program, None, is_persistable)
    rest = {name: chosen[name] for name in rest_of(contents, program, counters)}
    if rest:
        variables.put_values(scope, rest, read(list(rest)), dirname)


def rest_of(contents, program, counters=()):
    """The persistable variables of a program that are not the servers'."""
    kept = contents.by_program_name(counters)
    return [name for name in choose(program, None, is_persistable) if name not in kept]


def _check_numbers(dirname, stored):
    """Variables that are updated in one call share their beta powers and the like: these must be equal."""
    for who, (array, read_back) in stored.items():
        kept = read_back()
        if not np.array_equal(kept.reshape(-1), array.reshape(-1), equal_nan=True):
            raise CheckpointDamaged(f"{dirname}: {who} is {array.reshape(-1)[0]}, but {kept.reshape(-1)[0]} for a "
                                    f"variable that is updated together with it: were both saved by the same training?")
