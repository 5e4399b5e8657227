"""A server's program by the calls of ``fluid.io``, before it serves (and after): the original's way to resume.

A server has blocks of variables in its scope. From files of whole variables it takes its own, whatever number of
servers there was before; it saves what it has, which the others' blocks make whole again (``blocks``). What workers
keep themselves is not its business.
"""

import contextlib
import os

import numpy as np

from fleet_mpi import notices
from fleet_mpi.checkpoint import blocks, variables
from fleet_mpi.checkpoint.sources import Source
from fleet_mpi.checkpoint.variables import choose, is_persistable
from fleet_mpi.parameter_server.state import Inventory
from fleet_mpi.runtime import sessions
from fleet_mpi.transpile.server_program import scope_name, shards_of, state_name


class BlockValues:
    """The values of a server's program, in a scope; ``program`` is the whole one."""

    def __init__(self, distribution, index, scope):
        self.distribution, self.index, self.scope = distribution, index, scope
        self.program = distribution.origin
        self.contents = Inventory(sessions.describe(distribution))

    def at_one_moment(self):
        """What is added within the block is of one moment."""
        return contextlib.nullcontext()

    def add(self, save, vars=None, predicate=None, filename=None):
        """Let a save have some variables, a file for each block: several servers save into one folder."""
        if filename is not None:
            notices.once("blocks",
                         f"a server has blocks of variables, and saves each in a file of its own, not in {filename!r}")
        for name, places in self._chosen(vars, predicate).items():
            for shard, held in places:
                if shard is None and name in save.files:
                    continue   # one number for all blocks of a variable
                value = variables.value_in(self.scope, held)
                variables.write_values(save, [(_file(name, shard), value.array, ())])
                if shard is not None and shard.is_cut:
                    blocks.note(save, name, [(one.row_begin, one.rows) for one in self.contents.shards(shard.variable)])

    def load(self, source, vars=None, predicate=None):
        """Let the scope have this server's blocks of what is in a Source, if all of it fits."""
        whole, found, wrong = choose(self.program, None, is_persistable), {}, {}
        if len(source.files) == 1 and not source.has(self.program, whole):
            source = Source(source.folder)   # servers saved it: a file for each block
        wanted = self._needed(self._chosen(vars, predicate), source)
        for name, array, _ in source.read(self.program, wanted):
            wrong[name] = list(variables.differences(name, tuple(whole[name].shape), whole[name]._dtype, array))
            found[name] = [(held, _part(array, shard)) for shard, held in wanted[name]] if not wrong[name] else []
        variables.refuse_differences(source.folder, wrong)
        for held, part in (one for places in found.values() for one in places):
            self.scope.var(held).get_tensor().set(part)
        # Workers learn it when they greet: their own values are not to replace these, and what they keep themselves is
        # there.
        self.distribution.loaded_from = [os.path.abspath(source.folder), source.files]

    def _needed(self, chosen, source):
        """A rate that servers compute is computed before it is used: it may be missing."""
        kinds = self.contents.by_program_name(self.distribution.counters())
        return {name: places for name, places in chosen.items()
                if kinds[name].kind != "rate" or source.has(self.program, [name])}

    def _chosen(self, vars, predicate):
        """{variable of the whole program: [(shard, or None for a number; its name in the scope)]}."""
        listed = None if vars is None else {getattr(var, "name", var) for var in vars}
        chosen = choose(self.program, None, (predicate or is_persistable) if vars is None else is_persistable)
        found = {}
        for name, kept in self.contents.by_program_name(self.distribution.counters()).items():
            places = list(self._places(name, kept)) if name in chosen else []
            if places and (listed is None or listed & {name, *(held for _, held in places)}):
                found[name] = places
        return dict(sorted(found.items()))

    def _places(self, name, kept):
        if kept.kind in ("rate", "counter"):
            yield None, name
            return
        is_spread = kept.kind == "param" or self.contents.state(kept.variable, kept.state).like_param
        for shard in shards_of(self.distribution, self.index):
            if shard.variable == kept.variable:
                yield (shard if is_spread else None,
                       scope_name(shard) if kept.kind == "param" else state_name(name, shard, self.distribution))


def _file(name, shard):
    return blocks.name_of(name, shard.block) if shard is not None and shard.is_cut else name


def _part(array, shard):
    """A copy of the part of a whole value that belongs to a shard; a number belongs to all."""
    if shard is None:
        return array
    return np.array(array.reshape(-1)[shard.offset:shard.offset + shard.size].reshape(shard.shape))
