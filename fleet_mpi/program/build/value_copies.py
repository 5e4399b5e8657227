"""Copies of values that a gradient reads after the program has put others in their place.

A body runs again and again over the same variables, and a loop changes variables around it. Where a gradient needs
what an op found in such a variable, an ``assign`` with backward's role, put behind the op that wrote that value,
keeps it under a name of its own. Knows blocks and ops, no gradients.
"""

from fleet_mpi.program.graph.types import VarType


class ValueCopies:
    """The copies in one block. Of a body, ``outer`` gives those around ``op``, the op that runs it."""

    def __init__(self, block, outer=None, op=None):
        self.block, self.outer, self.op = block, outer, op
        self.positions = {id(one): position for position, one in enumerate(block.ops)}
        self.writers = {}
        for position, one in enumerate(block.ops):
            for name in dict.fromkeys(one.output_arg_names):
                self.writers.setdefault(name, []).append(position)
        self.wanted = {}  # (position to be put at, variable) -> copy

    def name(self, op, name, after):
        """Where the value lies that an op found in a variable, or (``after``) put there, once the block has run."""
        writers, position = self.writers.get(name, []), self.positions.get(id(op))
        if not name or position is None or self._is_no_tensor(name):
            return name
        if not writers and self.outer is not None and name not in self.block.vars:
            return self.outer.name(self.op, name, after=False)
        count = sum(writer < position + after for writer in writers)
        if not self._is_replaced(name, writers[count:]):
            return name
        return self._copy(name, count, writers[count - 1] + 1 if count else 0)

    def insert(self):
        """Add the copies to the block."""
        for (position, name), copy in sorted(self.wanted.items(), reverse=True):
            self.block._insert_op(position, "assign", {"X": [name]}, {"Out": [copy]})
        self.wanted = {}

    def _is_no_tensor(self, name):
        var = self.block.find_var(name)
        return var is None or var.type != VarType.LOD_TENSOR

    def _is_replaced(self, name, later):
        """Whether the next turn, or a later op, replaces a value; what plain ops of block 0 replace is warned of."""
        if self.outer is None:
            return any("sub_block" in self.block.ops[position].attrs for position in later)
        return bool(later) or name not in self.block.vars and name in self.writers

    def _copy(self, name, count, position):
        copy = f"{name}@VALUE@{self.block.idx}.{count}"  # blocks share one space of names when they run
        if copy not in self.block.vars:
            fields = self.block._var_recursive(name).fields()
            self.block.create_var(name=copy, **{**fields, "persistable": False, "is_data": False})
            self.wanted[position, name] = copy
        return copy
