"""Frame: the names, shapes and values of one plan, or of one interpreted run, and where each value lies.

Knows scopes and memory; ops are bound to it by binding.py.
"""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import MissingFeed, NotBuilt
from fleet_mpi.program.graph import registry
from fleet_mpi.program.graph.registry import Call, Meta

# 2 ** 64 over the golden ratio: multiples of it are far from each other.
SPREAD, LARGEST = 0x9E3779B97F4A7C15, 2 ** 63 - 1


class Clock:
    """How many runs a program has behind it, and on which worker: what random ops draw from.

    ``turn`` tells the turns of loops from each other, 0 outside of all; ``process_worker`` is this process's number
    among the workers, once it has joined a job.
    """

    __slots__ = ("step", "worker", "turn")
    process_worker = 0

    def __init__(self, worker=None, step=0):
        self.step = step
        self.worker = worker
        self.turn = 0

    @property
    def stream(self):
        """One number for (worker, step, turn)."""
        stream = ((Clock.process_worker if self.worker is None else self.worker) << 48) | self.step
        return stream ^ (self.turn * SPREAD & LARGEST) if self.turn else stream

    def turns(self):
        """Count the turns of a loop for ever; close it behind the loop."""
        around, number = self.turn, 0
        try:
            while True:
                number += 1
                self.turn = around * 1000003 + number  # a prime, so that loops in loops do not meet
                yield number - 1
        finally:
            self.turn = around


class Metas(dict):
    """Metas by name; asking for one that no live op made infers the dead op that would.

    A gradient needs the shape of its forward variable even when nobody needs its value. ``values`` are
    those at hand while ops are interpreted. Knows no frame: in a cycle of references the memory of a plan
    that is dropped would wait for the garbage collector.
    """

    def __init__(self, program, values):
        super().__init__()
        self.program, self.values = program, values
        self._makers = None  # variable -> the op that gives it its first value
        self._in_work = set()
        self.guessed = set()  # inferred from ops that do not run, for the shapes of others

    def __missing__(self, name):
        if name not in self._in_work:
            self._infer_makers(name)
        if name in self:
            return self[name]
        var = self.program.global_block().find_var(name)
        if var is None or -1 in var.shape:
            raise MissingFeed(f"{name!r} has no value: " + remedy(var))
        return Meta(var.shape, var._dtype)

    def _infer_makers(self, name):
        """Infer the op that makes a variable, and before it all that lead to it: a chain may be thousands long."""
        pending = [name]
        self._in_work.add(name)
        while pending:
            maker = self._maker(pending[-1])
            inputs = maker.input_arg_names if maker is not None else ()
            lacking = [one for one in inputs if one not in self and one not in self._in_work and self._maker(one)]
            self._in_work.update(lacking)
            if lacking:
                pending += lacking
            elif pending.pop() not in self and maker is not None:
                registry.infer(Call(maker, self))
                self.guessed.update(maker.output_arg_names)

    def _maker(self, name):
        if self._makers is None:
            self._makers = {}
            for op in self.program.global_block().ops:
                # An op that also reads the name (an update in place) tells nothing about it.
                for made in set(op.output_arg_names).difference(op.input_arg_names):
                    self._makers.setdefault(made, op)
        return self._makers.get(name)

    def value_now(self, name):
        """The value of a variable while ops are interpreted, as a host array; None while planning."""
        value = self.values.get(name)
        return None if value is None else arrays.to_host(value)


class Frame:
    """The names, metas and values of one plan (or one interpreted run)."""

    def __init__(self, program, scope, xp, clock, arena, notes=None, interpreted=False):
        self.program, self.scope, self.xp, self.clock, self.arena = program, scope, xp, clock, arena
        self.interpreted, self.before_run, self.notes = interpreted, [], notes
        self.values = {}
        self.metas = Metas(program, self.values if interpreted else {})
        self.views, self.placed = set(), {}
        self._scratch_user, self._scratch_used = None, 0
        self._cut = {}  # (offset, shape, dtype) -> the array there

    def is_view(self, name):
        """Whether a name may be a view of the input it is made from."""
        return name in self.views

    def scratch(self, user, shape, dtype):
        """See BoundCall.scratch."""
        size = Meta(shape, dtype).size * np.dtype(dtype).itemsize
        size = -(-size // arrays.ALIGNMENT_BYTES) * arrays.ALIGNMENT_BYTES
        used = self._scratch_used if self._scratch_user is user else 0
        self._scratch_user, self._scratch_used = user, used + size
        piece = self.arena.scratch(used + size)[used:]
        return piece[:Meta(shape, dtype).size * np.dtype(dtype).itemsize].view(dtype).reshape(shape)

    def lacks(self, name):
        """Whether an op that reads this name is the first to ask for it: its value is in the scope, or missing."""
        return name not in self.metas or name in self.metas.guessed and self.scope.array(name) is not None

    def resolve(self, name, op):
        """Find a variable that no op before this one made: it must have a value in the scope."""
        self.metas.guessed.discard(name)
        holder = self.scope.find_var(name)
        if holder is not None and holder.tensor.array is not None:
            array = holder.tensor.array
            if arrays.module_of(array) is not self.xp:
                array = arrays.to_module(array, self.xp)
                holder.put(array, holder.tensor.lod_offsets)
            self.metas[name] = Meta(array.shape, array.dtype, holder.tensor.lod_offsets)
            self.values[name] = array
        elif holder is not None and holder.value is not None:
            if isinstance(holder.value, arrays.DistantTable) and not _reads_by_rows(op, name):
                raise NotBuilt(f"{op} reads all of {name!r}, a table whose rows the servers keep: that is not built; "
                               f"only lookups, nce and hsigmoid are")
            self.metas[name] = _meta_of_value(holder.value)
            self.values[name] = holder.value
        else:
            raise MissingFeed(f"{op} reads {name!r}, which has no value: " + remedy(op.block.find_var(name)))

    def refresh(self):
        """Take the arrays of the scope that were replaced since they were resolved."""
        for name in list(self.values):
            array, var = self.scope.array(name), self.program.global_block().find_var(name)
            if array is not None and array is not self.values[name] and var is not None and var.persistable:
                self.resolve(name, None)

    def allocate_output(self, name, op):
        """Give an output its array: the scope's for persistable variables, else the one laid out."""
        meta = self.metas[name]
        if meta.kind != "dense" or name in self.views:
            return
        var = op.block.find_var(name)
        if var is not None and var.persistable:
            self.values[name] = self._persistable(name, meta)
            return
        held = self.values.get(name)
        if held is not None and getattr(held, "shape", None) == meta.shape and held.dtype == meta.dtype:
            return
        self.values[name] = self._temporary(name, meta)

    def array_to_feed(self, name, meta):
        """The array that a fed value is to be copied into: the scope's for persistable variables."""
        persistable = self.program.global_block().var(name).persistable
        self.values[name] = (self._persistable if persistable else self._temporary)(name, meta)
        return self.values[name]

    def _temporary(self, name, meta):
        buffer = self.placed.get(name)
        if buffer is not None:
            # The same object for the same place: cupy copies an input that shares memory with the output, unless
            # they are one.
            place = buffer.offset, meta.shape, meta.dtype
            if place not in self._cut:
                self._cut[place] = self.arena.view(*place)
            return self._cut[place]
        return arrays.empty(meta.shape, meta.dtype, self.xp)

    def keep_persistable(self, name, value, meta, op):
        """Let the scope have a value that an op made while it ran, if it outlives the run.

        In the array that the scope has, where it fits: a gradient's may be the one that is sent to servers.
        """
        var = op.block.find_var(name)
        if meta.kind == "dense" and var is not None and var.persistable:
            array = self._persistable(name, Meta(value.shape, value.dtype, meta.lod))
            if array is not value:
                self.xp.copyto(array, value)
                self.values[name] = array

    def _persistable(self, name, meta):
        holder = self.scope.find_var(name) or self.scope.var(name)
        array = holder.tensor.array
        if array is None or array.shape != meta.shape or array.dtype != meta.dtype \
                or arrays.module_of(array) is not self.xp:
            array = arrays.empty(meta.shape, meta.dtype, self.xp)
        holder.put(array, meta.lod)
        return array


def _reads_by_rows(op, name):
    """Whether an op takes this variable row by row, so that a DistantTable serves."""
    slot = registry.find(op.type).traits.get("by_rows")
    return slot is not None and name in op.input(slot)


def remedy(var):
    """What to do about a variable (None: there is none) that has no value, as the end of a sentence."""
    if var is not None and var.is_data:
        return f"feed it, exe.run(feed={{{var.name!r}: ...}}), shape {var.shape}, {var.dtype.value}"
    if var is not None and var.persistable:
        return "run the startup program (or load it) in this scope first"
    return "no op before this one writes it and it is not fed"


def _meta_of_value(value):
    """The Meta of what a scope holds besides arrays."""
    if isinstance(value, arrays.Rows):
        return Meta((value.height,) + tuple(value.values.shape[1:]), value.values.dtype, kind="rows")
    if isinstance(value, arrays.DistantTable):
        return Meta(value.shape, value.dtype, kind="raw")
    return Meta((), "float32", kind="raw")
