"""Where the temporaries of a plan lie: which are views, which share their input's memory, which are apart.

Knows ops and shapes, no arrays; ``memory.place`` gives the offsets.
"""

from fleet_mpi.program.engine.liveness import body_of, reads_of
from fleet_mpi.program.engine.memory import Buffer, place
from fleet_mpi.program.graph.registry import find


def lay_out(ops, feeds, fetches, frame):
    """Decide which temporaries are views, which lie in their input's memory, and where all others lie."""
    layout = Layout(ops, feeds, fetches, frame)
    for i, op in enumerate(ops):
        layout.enter_outputs(i, op)
        for name in reads_of(op):
            layout.use(name, i)
    for name in fetches:
        layout.use(name, len(ops))
    frame.arena.reserve(place(list({id(one): one for one in layout.roots.values()}.values())))
    frame.placed = layout.roots


class Layout:
    """The buffers found so far, op by op."""

    def __init__(self, ops, feeds, fetches, frame):
        self.frame = frame
        self.writes = count_writes(ops, feeds)
        self.last_use = {name: i for i, op in enumerate(ops) for name in reads_of(op) + op.output_arg_names}
        self.last_use.update({name: len(ops) for name in fetches})
        self.roots = {}  # variable -> the buffer it lies in
        self.held = {}   # row gradient -> the buffers its ids and values may lie in
        block = frame.program.global_block()
        for name, meta in feeds.items():
            if self.writes[name] == 1 and not block.var(name).persistable:
                self.roots[name] = Buffer(-1, meta.size * meta.dtype.itemsize)
                self.roots[name].last_use = self.last_use.get(name, -1)

    def buffers(self, name):
        """All buffers that a variable's value may lie in."""
        return [self.roots[name]] if name in self.roots else self.held.get(name, ())

    def use(self, name, i):
        """Note that step ``i`` reads a variable."""
        for buffer in self.buffers(name):
            buffer.end = max(buffer.end, i)

    def enter_outputs(self, i, op):
        """Find buffers for what step ``i`` writes."""
        traits = find(op.type).traits
        for slot, names in op.outputs.items():
            for name in names:
                if name not in self.roots and self._is_temporary(name, op):
                    self.roots[name] = self._buffer_for(name, op, slot, traits, i)
                elif self._is_rows(name):
                    self.held[name] = [one for source in reads_of(op) for one in self.buffers(source)]
                for buffer in self.buffers(name):
                    buffer.last_use = max(buffer.last_use, self.last_use[name])
                    buffer.end = max(buffer.end, i)

    def _is_temporary(self, name, op):
        var = op.block.find_var(name)
        meta = self.frame.metas.get(name)
        return (meta is not None and meta.kind == "dense" and self.writes[name] == 1
                and not (var is not None and var.persistable))

    def _is_rows(self, name):
        meta = self.frame.metas.get(name)
        return meta is not None and meta.kind == "rows"

    def _buffer_for(self, name, op, slot, traits, i):
        """The memory of a new temporary: its input's where the op allows and nobody else needs it."""
        meta = self.frame.metas[name]
        size = meta.size * meta.dtype.itemsize
        source = _source(op, slot, traits.get("view"))
        if self._may_share(source) and self.frame.metas[source].size == meta.size \
                and self.frame.metas[source].dtype == meta.dtype:
            self.frame.views.add(name)
            return self.roots[source]
        source = _source(op, slot, traits.get("inplace"))
        if self._may_share(source) and self.roots[source].size_bytes == size \
                and self.roots[source].last_use <= i and self._is_read_once(self.roots[source], op):
            return self.roots[source]
        return Buffer(i, size)

    def _is_read_once(self, buffer, op):
        """Whether one input only lies there: an op need not expect another one to change while it writes."""
        return sum(one is buffer for name in reads_of(op) for one in self.buffers(name)) == 1

    def _may_share(self, source):
        return source in self.roots and self.writes.get(source) == 1


def count_writes(ops, feeds):
    """How often each variable is written; inside nested blocks counts as often."""
    writes = dict.fromkeys(feeds, 1)
    for op in ops:
        for name in op.output_arg_names:
            writes[name] = writes.get(name, 0) + 1
        _count_inner_writes(body_of(op), writes)
    return writes


def _count_inner_writes(body, writes):
    for op in body.ops if body is not None else ():
        for name in op.output_arg_names:
            writes[name] = writes.get(name, 0) + 2
        _count_inner_writes(body_of(op), writes)


def _source(op, slot, pairs):
    names = op.inputs.get(pairs[slot], ()) if pairs and slot in pairs else ()
    return names[0] if names else None
