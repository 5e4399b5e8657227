"""Operator: one op in a block, naming the variables it reads and writes. Pure data."""

import os
import sys

from fleet_mpi.errors import ProgramError, nearest
from fleet_mpi.program.graph.types import Role

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_EXAMPLES = os.path.join(_PACKAGE, "examples")

# Attributes every op carries besides its own.
ROLE, ROLE_VAR, SCOPE = "op_role", "op_role_var", "op_namescope"
# What an op is computed in on a device, in programs with mixed precision: one of these two element types.
COMPUTE_DTYPE, HALF, SINGLE = "compute_dtype", "float16", "float32"
# Attributes that name several blocks.
BLOCK_LISTS = ("optimize_blocks",)
# Left out when an op is printed.
HIDDEN = (ROLE_VAR, SCOPE, "forward_vars")


class Operator:
    """An op's type, its variables by slot, its attributes, and where in the script it was made.

    An empty name in a slot means: not given, or (a gradient) not wanted.
    """

    def __init__(self, block, type, inputs=None, outputs=None, attrs=None, site=None):
        self.block = block
        self.type = type
        self.inputs = {slot: as_names(given, type) for slot, given in (inputs or {}).items() if given is not None}
        self.outputs = {slot: as_names(given, type) for slot, given in (outputs or {}).items() if given is not None}
        self.attrs = dict(attrs or {})
        self.site = site or call_site()

    @property
    def idx(self):
        """The position in the block."""
        return next(i for i, op in enumerate(self.block.ops) if op is self)

    @property
    def desc(self):
        """The op as ``op.desc.type()``, ``op.desc.input("X")``, ... ask for it."""
        from fleet_mpi.program.graph.operator_desc import OperatorDesc
        return OperatorDesc(self)

    def input(self, slot):
        """The names of the variables read in this slot."""
        return list(self.inputs.get(slot, ()))

    def output(self, slot):
        """The names of the variables written in this slot."""
        return list(self.outputs.get(slot, ()))

    @property
    def input_names(self):
        """The slots that are read."""
        return list(self.inputs)

    @property
    def output_names(self):
        """The slots that are written."""
        return list(self.outputs)

    @property
    def input_arg_names(self):
        """All variables read, in slot order."""
        return [name for names in self.inputs.values() for name in names if name]

    @property
    def output_arg_names(self):
        """All variables written, in slot order."""
        return [name for names in self.outputs.values() for name in names if name]

    @property
    def attr_names(self):
        """The names of the attributes."""
        return list(self.attrs)

    def attr(self, name):
        """One attribute, blocks as Blocks; an unknown name is an error that has the nearest one."""
        if name not in self.attrs:
            raise ProgramError(f"{self} has no attribute {name!r}; {nearest(name, self.attrs)}")
        return self._shown(name)

    def _shown(self, name):
        """An attribute as scripts see it: ops keep the numbers of blocks, so that they can be copied."""
        value, blocks = self.attrs[name], self.block.program.blocks
        if name == "sub_block":
            return blocks[value]
        return [blocks[one] for one in value] if name in BLOCK_LISTS else value

    def _block_attr_id(self, name):
        return self.attrs[name]

    def _blocks_attr_ids(self, name):
        return list(self.attrs[name])

    _block_attr = _blocks_attr = attr

    def has_attr(self, name):
        """Whether the attribute is set."""
        return name in self.attrs

    def all_attrs(self):
        """A copy of all attributes, blocks as Blocks."""
        return {name: self._shown(name) for name in self.attrs}

    def _set_attr(self, name, value):
        self.attrs[name] = value
        self.block.program.touch()

    set_attr = _set_attr

    def _rename_input(self, old, new):
        _rename(self.inputs, old, new)
        self.block.program.touch()

    def _rename_output(self, old, new):
        _rename(self.outputs, old, new)
        self.block.program.touch()

    def _rename_everywhere(self, old, new):
        for slots in (self.inputs, self.outputs, self.attrs.get("forward_vars", {})):
            _rename(slots, old, new)
        self.block.program.touch()

    @property
    def role(self):
        """What the op is for."""
        return Role(self.attrs.get(ROLE, 0))

    @property
    def trains(self):
        """Whether the op computes gradients, sends them, updates or receives parameters, or sets a learning rate."""
        return bool(self.role & (Role.Backward | Role.Optimize | Role.LRSched | Role.RPC))

    def where(self):
        """``train.py:12``: the line of the script that made the op."""
        return f"{self.site[0]}:{self.site[1]}"

    def __str__(self):
        outs = ", ".join(self.output_arg_names)
        return f"op {self.type!r} -> {outs or '(nothing)'} (made at {self.where()})"

    def to_string(self, throw_on_error=True):
        """One line: ``Out=[y] = mul(X=[x], Y=[w]) {axis: 1}``."""
        attrs = {name: value for name, value in sorted(self.attrs.items())
                 if name not in HIDDEN and value is not None}
        return (f"{_slots(self.outputs)} = {self.type}({_slots(self.inputs)})"
                f" {{{', '.join(f'{name}: {value}' for name, value in attrs.items())}}}")


def as_names(given, who):
    """A list of names from a variable, a name, or a list of them, given to an op."""
    try:
        if isinstance(given, (list, tuple)):
            return [one if isinstance(one, str) else one.name for one in given]
        return [given if isinstance(given, str) else given.name]
    except AttributeError:
        raise ProgramError(f"{who}: expected variables of the program, got {given!r:.80}") from None


def call_site():
    """File and line of the nearest caller outside this package (examples count as outside)."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_PACKAGE) or path.startswith(_EXAMPLES):
            break
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _slots(slots):
    return ", ".join(f"{slot}=[{', '.join(names)}]" for slot, names in slots.items())


def _rename(slots, old, new):
    for slot, names in slots.items():
        slots[slot] = [new if name == old else name for name in names]
