"""Saving and loading a training whose parameters are on servers, in the files that one process writes and reads.

Files have the names of the untranspiled program, and its whole shapes: another number of servers, another way to
cut, or one process can load them. Parameters, optimizer states and the counters of schedules are the servers', all
of one moment; what else persists (statistics of batch normalisation, rates that workers set) is the saving worker's.
Which rank saves is decided above.
"""

import functools
import os

import numpy as np

from fleet_mpi.checkpoint import variables
from fleet_mpi.checkpoint.inference_model import add_model, base_name, model_for
from fleet_mpi.checkpoint.resuming import note_runs
from fleet_mpi.checkpoint.saved_files import SavedFiles
from fleet_mpi.checkpoint.transaction import saving_into
from fleet_mpi.checkpoint.variables import choose, is_persistable
from fleet_mpi.errors import CheckpointDamaged
from fleet_mpi.parameter_server.kept import Contents
from fleet_mpi.ranks.ending import amid


@amid("a save")
def save_vars(whole, dirname, program, scope, predicate=is_persistable, filename=None, counters=(), runs=None):
    """Save variables of the untranspiled program from the servers and from a worker's scope.

    The servers stand still until the last value is written; old files are replaced after that, or none is.

    Args:
        whole: the worker's ``Whole``; none of its client's pushes may be under way.
        counters: the persistable variables that the servers' schedules keep.
        runs: the worker's program, where its runs are to be counted: all that persists is saved.
    """
    with saving_into(dirname) as save:
        add_vars(save, whole, choose(program, None, predicate), scope, filename, counters)
        if runs is not None:
            note_runs(save, runs)


def add_vars(save, whole, chosen, scope, filename=None, counters=()):
    """Let a save have variables, from the servers and from a worker's scope; the servers stand still meanwhile."""
    kept = whole.contents.by_program_name(counters)
    mine = {name: variables.value_in(scope, name) for name in chosen if name not in kept}

    def values():
        for name in chosen:
            if name in kept:
                yield name, whole.fetch_kept(kept[name]), ()
            else:
                yield name, mine[name].array, mine[name].lod_offsets
    with whole.frozen():
        variables.write_values(save, values(), filename)


@amid("a save")
def save_inference_model(whole, dirname, feeded_var_names, target_vars, program, scope, model_filename=None,
                         params_filename=None, program_only=False):
    """Save the part of the untranspiled program that leads from the fed variables to the targets, and its parameters.

    Returns the names of the targets.
    """
    pruned, content, names = model_for(feeded_var_names, target_vars, program)
    with saving_into(dirname) as save:
        add_model(save, content, model_filename)
        if not program_only:
            add_vars(save, whole, choose(pruned, None, is_persistable), scope, base_name(params_filename))
    return names


def load_server(server, dirname, program=None, filename=None):
    """Let a server have its shards of what was saved, whatever cut it was saved from.

    ``program`` is the untranspiled one; it is needed where all variables are in one file. Every file is read whole
    and checked; CheckpointDamaged names the variables that are missing or do not fit.
    """
    contents, wanted, files = Contents(server.description), {}, SavedFiles(dirname)
    saved = choose(program, None, is_persistable) if filename is not None else ()
    for name, kept in contents.by_program_name(server.snapshots.counters()).items():
        targets = _targets(server, contents, kept)
        # A rate that servers compute is computed before it is used: it may be missing.
        if targets and (kept.kind != "rate" or name in saved
                        or filename is None and files.has(name)):
            wanted[name] = kept, targets
    wrong, stored = {}, {}
    for name, array, _ in variables.read_values(dirname, sorted(wanted), filename, saved):
        kept, targets = wanted[name]
        wrong[name] = list(variables.differences(name, *_shape_and_dtype(server, contents, kept), array))
        if not wrong[name]:
            stored |= _put(server, contents, kept, targets, array)
    variables.refuse_differences(dirname, wrong)
    if wanted.keys() - wrong:
        raise CheckpointDamaged(f"{os.path.join(dirname, filename)}: the program that was saved has no "
                                + ", ".join(sorted(wanted.keys() - wrong)[:20]))
    _check_numbers(dirname, stored)


@amid("a load")
def load_persistables(whole, dirname, program, scope, filename=None, counters=()):
    """Let the servers, which are running, and a worker's scope have what was saved. For one worker to call."""
    kept = whole.contents.by_program_name(counters)
    chosen = choose(program, None, is_persistable)
    mine = [name for name in chosen if name in kept]
    # All is looked at before anything is changed; the files are read a second time for that, not kept in memory.
    variables.refuse_differences(dirname, {
        name: list(variables.differences(name, tuple(chosen[name].shape), chosen[name]._dtype, array))
        for name, array, _ in variables.read_values(dirname, mine, filename, chosen)})
    load_rest(whole.contents, dirname, program, scope, filename, counters)
    stored = {}
    with whole.frozen():
        for name, array, _ in variables.read_values(dirname, mine, filename, chosen):
            whole.store_kept(kept[name], array)
            if kept[name].kind == "state" and array.size == 1:
                stored[name] = array, functools.partial(whole.fetch_kept, kept[name])
        _check_numbers(dirname, stored)


def load_rest(contents, dirname, program, scope, filename=None, counters=()):
    """Let a worker's scope have what is not the servers'; ``contents`` is ``Contents(description)``."""
    kept = contents.by_program_name(counters)
    chosen = choose(program, None, is_persistable)
    rest = {name: var for name, var in chosen.items() if name not in kept}
    if rest:
        variables.put_values(scope, rest, variables.read_values(dirname, list(rest), filename, chosen), dirname)


def _targets(server, contents, kept):
    """The shards that this server has of something; [None] for a number that every server has."""
    if kept.kind in ("rate", "counter"):
        return [None]
    return [shard for shard in contents.shards(kept.variable) if shard.server == server.index]


def _shape_and_dtype(server, contents, kept):
    if kept.kind in ("rate", "counter"):
        number = server.snapshots.find((kept.kind, kept.variable))
        return number.shape, number.dtype
    return contents.shape_and_dtype(kept)


def _put(server, contents, kept, shards, array):
    """Store an array; for a state that is one number, returns {who: (it, how to read it back)}."""
    if kept.kind in ("rate", "counter"):
        server.snapshots.find((kept.kind, kept.variable))[...] = array
        return {}
    table, line, numbers = server.table_of(kept.variable), array.reshape(-1), {}
    for shard in shards:
        where, part = (kept.variable, shard.block), line[shard.offset:shard.offset + shard.size]
        if kept.kind == "param":
            table.param(*where)[...] = part.reshape(shard.shape)
        elif contents.state(kept.variable, kept.state).like_param:
            table.set_state(*where, kept.state, part.reshape(shard.shape))
        else:
            table.set_state(*where, kept.state, array)
            numbers[f"{kept.state} of {shard.name}"] = array, functools.partial(table.state, *where, kept.state)
    return numbers


def _check_numbers(dirname, stored):
    """Variables that are updated in one call share their beta powers and the like: these must be equal."""
    for who, (array, read_back) in stored.items():
        kept = read_back()
        if not np.array_equal(kept.reshape(-1), array.reshape(-1), equal_nan=True):
            raise CheckpointDamaged(f"{dirname}: {who} is {array.reshape(-1)[0]}, but {kept.reshape(-1)[0]} for a variable "
                                    f"that is updated together with it: were both saved by the same training?")
