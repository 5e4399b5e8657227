"""Mixed precision on a device: casts put before the ops that are marked, when a plan is made. Programs stay as written.

Ops carry in the attribute ``compute_dtype`` what they are to be computed in (``program/build/amp_lists``). What an op
computes in float16 stays float16 for those that read it; a gradient has the type of its variable, so the gradients of
parameters arrive in float32. A host computes everything in float32, and its plans never come by here.
"""

from fleet_mpi.program.graph.operator import COMPUTE_DTYPE, HALF, ROLE, SINGLE, Operator
from fleet_mpi.program.graph.registry import FORWARD, GRAD, GRAD_DTYPES, find
from fleet_mpi.program.graph.types import Role, VarType


def with_casts(ops):
    """The ops with casts between float16 and float32 where their marks ask for them."""
    if not any(op.attrs.get(COMPUTE_DTYPE) == HALF for op in ops):
        return ops
    caster = _Caster()
    for op in ops:
        caster.add(op)
    return caster.ops


class _Caster:
    """The ops so far, which variables are float16 after them, and which casts can be read again."""

    def __init__(self):
        self.ops = []
        self.half = set()
        self.casts = {}  # (variable, element type) -> the variable that holds its cast
        self.count = 0

    def add(self, op):
        """Add an op, its reads and writes renamed to casts where types differ."""
        dtype = op.attrs.get(COMPUTE_DTYPE) or self._follow(op)
        inputs = {slot: [self._read(op, name, _type_in(op, slot, dtype)) for name in names]
                  for slot, names in op.inputs.items()}
        outputs, after = {}, []
        for slot, names in op.outputs.items():
            outputs[slot] = [self._write(op, name, _type_in(op, slot, dtype), after) for name in names]
        attrs = op.attrs
        if FORWARD in attrs:
            attrs = {**attrs, GRAD_DTYPES: {slot: _type_in(op, slot, dtype) for slot in outputs}}
        self.ops.append(Operator(op.block, op.type, inputs, outputs, attrs, op.site))
        self.ops += after

    def _follow(self, op):
        """What an op without a mark is computed in: sums and copies of float16 gradients in float16."""
        types = [self._type_of(op, name) for name in op.input_arg_names]
        is_half = op.role & Role.Backward and HALF in types and SINGLE not in types
        return HALF if is_half else SINGLE

    def _type_of(self, op, name):
        """float16 or float32; None for what is never cast: integers, rows, arrays."""
        if name in self.half:
            return HALF
        var = op.block.find_var(name)
        is_single = var is not None and var.type == VarType.LOD_TENSOR and var.dtype == SINGLE
        return SINGLE if is_single else None

    def _read(self, op, name, dtype):
        """The name under which an op finds a variable in an element type; a cast is added if there is none yet."""
        if not name or self._type_of(op, name) in (None, dtype):
            return name
        if (name, dtype) not in self.casts:
            self.casts[name, dtype] = self._new_name(name, dtype)
            self.ops.append(_cast(op, name, self.casts[name, dtype], dtype))
        return self.casts[name, dtype]

    def _write(self, op, name, dtype, after):
        """The name under which an op leaves a result; ``after`` gets the cast to the type the variable must have."""
        for kind in (HALF, SINGLE):
            self.casts.pop((name, kind), None)
        self.half.discard(name)
        if not name or self._type_of(op, name) is None:
            return name
        variable, is_gradient, _ = name.partition(GRAD)
        wanted = (HALF if variable in self.half else SINGLE) if is_gradient else dtype
        if wanted == HALF:
            self.half.add(name)
        if wanted == dtype:
            return name
        computed = self._new_name(name, dtype)
        after.append(_cast(op, computed, name, wanted))
        return computed

    def _new_name(self, name, dtype):
        self.count += 1
        return f"{name}.cast_{dtype}_{self.count}"


def _type_in(op, slot, dtype):
    """The element type of a slot's numbers in an op: of some ops, statistics and weights stay float32."""
    half_slots = find(op.type.removesuffix("_grad") if FORWARD in op.attrs else op.type).traits.get("half_slots")
    return dtype if half_slots is None or slot.removesuffix(GRAD) in half_slots.split() else SINGLE


def _cast(op, name, out, dtype):
    attrs = {"in_dtype": SINGLE if dtype == HALF else HALF, "out_dtype": dtype, ROLE: op.attrs.get(ROLE, 0)}
    return Operator(op.block, "cast", {"X": [name]}, {"Out": [out]}, attrs, op.site)
