"""Mixed precision on a device: casts put before the ops that are marked, when a plan is made. Programs stay as written.

Ops carry in the attribute ``compute_dtype`` what they are to be computed in (``program/build/amp_lists``). What an op
computes in float16 stays float16 for those that read it; a gradient has the type of its variable, so the gradients of
parameters arrive in float32. Parameters are cast by one op in front of all others. A host computes everything in
float32, and its plans never come by here.
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
    return caster.all_ops()


class _Caster:
    """The ops so far, which variables are float16 after them, and which casts can be read again."""

    def __init__(self):
        self.ops = []
        self.half = set()
        self.casts = {}  # (variable, element type) -> the variable that holds its cast
        self.written = set()
        self.parameters = {}  # parameter -> the variable that holds its cast, made in front of all ops
        self.count = 0

    def all_ops(self):
        """The casts of parameters as one op, and the ops."""
        if not self.parameters:
            return self.ops
        attrs = {ROLE: int(Role.Forward)}
        return [Operator(self.ops[0].block, "cast_all", {"X": [*self.parameters]},
                         {"Out": [*self.parameters.values()]}, attrs, self.ops[0].site), *self.ops]

    def add(self, op):
        """Add an op, its reads and writes renamed to casts where types differ."""
        dtype = op.attrs.get(COMPUTE_DTYPE) or self._follow(op)
        inputs = {slot: [self._read(op, name, _type_in(op, slot, dtype)) for name in names]
                  for slot, names in op.inputs.items()}
        outputs, made_in, after = {}, {}, []
        for slot, names in op.outputs.items():
            made_in[slot] = self._type_made(op, slot, names, dtype)
            outputs[slot] = [self._write(op, name, made_in[slot], after) for name in names]
        attrs = {**op.attrs, GRAD_DTYPES: made_in} if FORWARD in op.attrs else op.attrs
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
            if dtype == HALF and name not in self.written and op.block.find_var(name).persistable:
                self.parameters[name] = self.casts[name, dtype]
            else:
                self.ops.append(_cast(op, name, self.casts[name, dtype], dtype))
        return self.casts[name, dtype]

    def _write(self, op, name, dtype, after):
        """The name under which an op leaves a result; ``after`` gets the cast to the type the variable must have."""
        for kind in (HALF, SINGLE):
            self.casts.pop((name, kind), None)
        self.half.discard(name)
        self.written.add(name)
        if not name or self._type_of(op, name) is None:
            return name
        wanted = self._type_of_variable(name) if GRAD in name else dtype
        if wanted == HALF:
            self.half.add(name)
        if wanted == dtype:
            return name
        computed = self._new_name(name, dtype)
        after.append(_cast(op, computed, name, wanted))
        return computed

    def _type_of_variable(self, gradient):
        """What the variable of a gradient is, and so the gradient is to be."""
        return HALF if gradient.partition(GRAD)[0] in self.half else SINGLE

    def _type_made(self, op, slot, names, dtype):
        """The element type in which an op makes what is in a slot: of some gradients, the one that they are to have."""
        made, forward = _type_in(op, slot, dtype), slot.removesuffix(GRAD)
        has_choice = made == HALF and slot != forward and forward in _traits(op).get("single_grads", "").split()
        return self._type_of_variable(names[0]) if has_choice and names else made

    def _new_name(self, name, dtype):
        self.count += 1
        return f"{name}.cast_{dtype}_{self.count}"


def _type_in(op, slot, dtype):
    """The element type of a slot's numbers in an op: of some ops, statistics and weights stay float32."""
    half_slots = _traits(op).get("half_slots")
    return dtype if half_slots is None or slot.removesuffix(GRAD) in half_slots.split() else SINGLE


def _traits(op):
    """Those of an op's definition, of a gradient op those of its forward op's."""
    return find(op.type.removesuffix("_grad") if FORWARD in op.attrs else op.type).traits


def _cast(op, name, out, dtype):
    attrs = {"in_dtype": SINGLE if dtype == HALF else HALF, "out_dtype": dtype, ROLE: op.attrs.get(ROLE, 0)}
    return Operator(op.block, "cast", {"X": [name]}, {"Out": [out]}, attrs, op.site)
