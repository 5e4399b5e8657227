"""The ONNX graph while it is made, and what a converter sees of one op.

A variable of a program may be written several times, a value of ONNX once: the graph keeps for every variable the
value that it has at this point. Knows no op.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from fleet_mpi.program.graph.registry import BuildCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, NoReturn

    from fleet_mpi.program.graph.operator import Operator

    Size = int | tuple[str, int]   # a number, or (slot, axis): what a variable has there when the model runs

OFFSETS = ".lod"   # follows the name of a fed variable: the offsets of its sequences, an input of their own


class Refused(Exception):
    """An op that has no counterpart as it is used; the text names it and says why."""


class Graph:
    """Nodes, constants and inputs, and the value of every variable."""

    def __init__(self, values: dict[str, np.ndarray], variables: Iterable[str]) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}   # the variables that are read come to these
        self.offsets: dict[str, str] = {}            # {fed variable: the input with its sequences' offsets}
        self._saved = values
        self._value_of: dict[str, str] = {}
        self._sequences_of: dict[str, str] = {}      # {variable: the fed one that has its sequences}
        self._variables = set(variables)             # no other value gets one of these names
        self._names: set[str] = set()
        self._equal: dict[tuple[Any, ...], str] = {}

    def feed(self, name: str, has_sequences: bool) -> None:
        """Let a variable be an input."""
        self._names.add(name)
        self._value_of[name] = name
        if has_sequences:
            self._sequences_of[name] = name

    def value(self, variable: str) -> str:
        """The value that a variable has now."""
        if variable not in self._value_of:
            if variable not in self._saved:
                raise Refused(f"it reads {variable!r}, an output that is not exported")
            self._value_of[variable] = self.name_for(variable)
            self.constants[self._value_of[variable]] = self._saved[variable]
        return self._value_of[variable]

    def assign(self, variable: str, value: str, since: int) -> None:
        """Let a variable have a value; one that a node from ``since`` on makes gets the variable's name if it can."""
        made_here = any(value in node.output for node in self.nodes[since:])
        if made_here and variable not in self._names and value not in self._value_of.values():
            value = self._renamed(value, self.name_for(variable), since)
        self._value_of[variable] = value

    def node(self, type: str, inputs: Sequence[str], outputs: int, **attrs: Any) -> list[str]:
        """Append a node; returns the names of its outputs. Attributes that are None are left out."""
        names = [self.name_for(f"{type.lower()}.out") for _ in range(outputs)]
        self.nodes.append(helper.make_node(type, list(inputs), names, **{
            key: value for key, value in attrs.items() if value is not None}))
        return names

    def constant(self, array: np.ndarray) -> str:
        """The name of a constant; equal ones are one."""
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._equal:
            self._equal[key] = self.name_for("constant.value")
            self.constants[self._equal[key]] = array
        return self._equal[key]

    def tensors(self) -> list[TensorProto]:
        """All constants as ONNX has them."""
        return [numpy_helper.from_array(np.asarray(array), name) for name, array in self.constants.items()]

    def pass_sequences(self, op: Operator) -> None:
        """Let the outputs of an op have the sequences that its first input with some has."""
        source = next((self._sequences_of[name] for name in op.input_arg_names if name in self._sequences_of), None)
        for name in op.output_arg_names:
            self._sequences_of.pop(name, None)
            var = op.block.find_var(name)
            if source is not None and var is not None and var.lod_level:
                self._sequences_of[name] = source

    def offsets_of(self, variable: str) -> str:
        """The input with the offsets of a variable's sequences."""
        source = self._sequences_of.get(variable)
        if source is None:
            raise Refused(f"the sequences of {variable!r} are not those of a variable that is fed")
        if source not in self.offsets:
            self.offsets[source] = self.name_for(source + OFFSETS)
        return self.offsets[source]

    def name_for(self, wanted: str) -> str:
        """A name that no value has yet: the one wanted, or that with a number."""
        name, number = wanted, 0
        while name in self._names or number and name in self._variables:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name

    def _renamed(self, old: str, new: str, since: int) -> str:
        for node in self.nodes[since:]:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    if name == old:
                        names[i] = new
        self._names.discard(old)
        return new


class Step(BuildCall):
    """One op on its way into the graph. As a Call of the op table it has shapes (-1: unknown), types and attributes."""

    def __init__(self, graph: Graph, op: Operator) -> None:
        super().__init__(op)
        self.graph = graph
        self._since = len(graph.nodes)

    def __getitem__(self, slot: str) -> str:
        """The value of the variable in an input slot."""
        return self.graph.value(self.op.inputs[slot][0])

    def all(self, slot: str) -> list[str]:
        """The values of all variables in an input slot."""
        return [self.graph.value(name) for name in self.op.inputs.get(slot, ())]

    def put(self, slot: str, value: str, index: int = 0) -> None:
        """Let the variable in an output slot have a value; an output that is not wanted is passed over."""
        name = (self.op.outputs.get(slot) or [""])[index]
        if name:
            self.graph.assign(name, value, self._since)

    def node(self, type: str, *inputs: str, **attrs: Any) -> str:
        """The output of a new node."""
        return self.graph.node(type, inputs, 1, **attrs)[0]

    def nodes(self, type: str, outputs: int, *inputs: str, **attrs: Any) -> list[str]:
        """The outputs of a new node."""
        return self.graph.node(type, inputs, outputs, **attrs)

    def constant(self, value: Any, dtype: Any = "int64") -> str:
        """A constant."""
        return self.graph.constant(np.asarray(value, dtype))

    def known(self, slot: str, index: int = 0) -> np.ndarray | None:
        """The values of an input that is a constant, else None."""
        return self.graph.constants.get(self.all(slot)[index])

    def cast(self, value: str, dtype: Any) -> str:
        """A value in another element type."""
        return self.node("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reshape(self, value: str, sizes: Iterable[Size]) -> str:
        """A value in another shape; one size may be -1."""
        sizes = self._filled_in(sizes)
        if sum(size == -1 or isinstance(size, tuple) for size in sizes) <= 1:
            return self.node("Reshape", value, self.constant([-1 if isinstance(size, tuple) else size
                                                              for size in sizes]))
        return self.node("Reshape", value, self.sizes(sizes))

    def sizes(self, sizes: Iterable[Size]) -> str:
        """Sizes as an int64 value."""
        sizes = self._filled_in(sizes)
        if not any(isinstance(size, tuple) for size in sizes):
            return self.constant(sizes)
        return self.node("Concat", *(self._size(size) for size in sizes), axis=0)

    def shape_of(self, slot: str) -> list[Size]:
        """All sizes of an input."""
        return [(slot, axis) for axis in range(len(self.shape(slot)))]

    def squeezed(self, value: str, axes: Sequence[int]) -> str:
        """Without these dimensions of size 1."""
        return self.node("Squeeze", value, self.constant(list(axes))) if axes else value

    def unsqueezed(self, value: str, axes: Sequence[int]) -> str:
        """With dimensions of size 1 at these places of the result."""
        return self.node("Unsqueeze", value, self.constant(list(axes))) if axes else value

    def refuse(self, why: str) -> NoReturn:
        """Raise Refused."""
        raise Refused(why)

    def _filled_in(self, sizes: Iterable[Size]) -> list[Size]:
        """Sizes of variables as numbers, where these are known."""
        known = [self.shape(size[0])[size[1]] if isinstance(size, tuple) else size for size in sizes]
        return [size if isinstance(size, tuple) and number < 0 else number for size, number in zip(sizes, known)]

    def _size(self, size: Size) -> str:
        if not isinstance(size, tuple):
            return self.constant([size])
        slot, axis = size
        return self.node("Shape", self[slot], start=axis, end=axis + 1)
