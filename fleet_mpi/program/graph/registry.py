"""The op table: for every op type its slots, shape rule, computation and gradient.

An op is a class entered by ``@op(...)`` in ``program/ops/<family>.py``::

    @op("relu", inputs="X", outputs="Out", grad_reads="Out")
    class Relu:
        def infer(k):                     # shapes: when the op is added, and when it is planned
            k.set("Out", k.shape("X"))

        def run(k):                       # bound once per plan; the returned call runs every step
            x, out, xp = k["X"], k["Out"], k.xp
            return lambda: xp.maximum(x, 0, out=out)

        def grad(k):                      # the same for ``relu_grad``
            out, dout, dx, xp = k["Out"], k["Out@GRAD"], k["X@GRAD"], k.xp
            return lambda: xp.multiply(dout, out > 0, out=dx)

``k`` is a Call. Slots: ``"X Y"``; ``"X*"`` takes a list, ``"Bias?"`` may be absent.
Knows no executor: whoever plans gives the Call its arrays.
"""

import importlib

import numpy as np

from fleet_mpi.errors import FleetError, ProgramError, nearest
from fleet_mpi.program.graph.types import VarType, is_float
from fleet_mpi.program.graph.variable import Variable

GRAD = "@GRAD"
# Attribute of a gradient op: the forward op's variables by slot, known for their shapes.
FORWARD = "forward_vars"
# The same where a plan computes in mixed precision: the element type of each output slot's gradients.
GRAD_DTYPES = "grad_dtypes"
_OPS = {}
# Where ops are: families that say which ops they have, and modules that meet other ranks, or files.
_FAMILIES = "fleet_mpi.program.ops"
_OTHERS = ("fleet_mpi.runtime.ops", "fleet_mpi.checkpoint.models.load_op")


class Definition:
    """One entry of the op table."""

    def __init__(self, type, body, inputs, outputs, attrs, grad_reads, **traits):
        self.type = type
        self.inputs = parse_slots(inputs)
        self.outputs = parse_slots(outputs)
        self.attrs = attrs
        self.infer = body.infer
        self.run = getattr(body, "run", None)
        self.grad = getattr(body, "grad", None)
        self.infer_grad = getattr(body, "infer_grad", None)
        # Makes the backward ops itself, instead of one ``<type>_grad``: see program/build/backward.py.
        self.make_grad = getattr(body, "make_grad", None)
        self.grad_reads = parse_slots(grad_reads)
        self.traits = traits

    def check_slots(self, op):
        """Raise where a slot is unknown, missing, or holds more than one variable without being a list."""
        for kind, given, known in (("input", op.inputs, self.inputs), ("output", op.outputs, self.outputs)):
            for slot, names in given.items():
                if slot not in known:
                    raise ProgramError(f"{op} has no {kind} {slot!r}; {nearest(slot, known)}")
                if len(names) > 1 and known[slot] != "*":
                    raise ProgramError(f"{op}: {kind} {slot!r} takes one variable, got {names}")
            for slot, mark in known.items():
                if mark == "" and not given.get(slot):
                    raise ProgramError(f"{op}: {kind} {slot!r} is missing")

    def check_attrs(self, op):
        """Raise where an attribute is a variable, or a list that holds one."""
        for name, value in op.attrs.items():
            for one in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(one, Variable):
                    raise ProgramError(f"{op}: {name!r} must be known when the program is built, got the variable "
                                       f"{one.name!r}, which has a value only when it runs; give a number")


def op(type, inputs="", outputs="Out", attrs=None, grad_reads="", given="", **traits):
    """Decorator: enter a class with ``infer``, ``run`` and perhaps ``grad`` as an op.

    ``given`` = "AxisTensor?", inputs that stand for attributes: the gradient reads them too, and they get none.
    Traits: ``view`` = {"Out": "X"}, the output may be a view of the input (run says so with
    ``k.put``); ``inplace`` = {"Out": "X"}, the output may lie in the input's memory;
    ``grad_inplace`` the same for the gradient; ``no_grad`` = "Label", inputs that get none, float or
    not; ``by_rows`` = "W", an input that may be a DistantTable; ``effect``, runs even if nobody reads it;
    ``dynamic``, output shapes depend on values, so the block is interpreted op by op; ``constant``, the
    output depends on attributes alone; ``by_executor``, only shown: the executor itself does it; ``enter``,
    called with a Call before the op's body is inferred: it defines what the op itself puts into the body;
    ``half_slots`` = "X Y", with mixed precision only these may be float16; ``single_grads`` = "Filter", computing in
    float16 its gradient can leave theirs in float32.
    """
    names = " ".join(parse_slots(given))
    traits["no_grad"] = f"{traits.get('no_grad', '')} {names}"

    def enter(body):
        definition = Definition(type, body, f"{inputs} {given}", outputs, dict(attrs or {}), f"{grad_reads} {names}",
                                **traits)
        _OPS[type] = definition
        if definition.grad is not None:
            _OPS[type + "_grad"] = _grad_definition(definition)
        return body
    return enter


def find(type):
    """The definition of an op type."""
    if not is_known(type):
        raise ProgramError(f"no op is called {type!r}; {nearest(type, all_types())}")
    return _OPS[type]


def is_known(type):
    """Whether there is an op of this type; its family is imported."""
    if type not in _OPS:
        family_of = importlib.import_module(_FAMILIES).FAMILY_OF
        family = family_of.get(type) or family_of.get(type.removesuffix("_grad"))
        for home in (f"{_FAMILIES}.{family}",) if family else _OTHERS:
            importlib.import_module(home)
    return type in _OPS


def all_types():
    """Every op type, gradients included."""
    for home in (*(f"{_FAMILIES}.{family}" for family in importlib.import_module(_FAMILIES).FAMILIES), *_OTHERS):
        importlib.import_module(home)
    return sorted(_OPS)


def parse_slots(text):
    """``"X Y* Bias?"`` -> {"X": "", "Y": "*", "Bias": "?"}."""
    slots = {}
    for word in text.split():
        mark = word[-1] if word[-1] in "*?" else ""
        slots[word.rstrip("*?")] = mark
    return slots


def _grad_definition(forward):
    """The entry of ``<type>_grad``: reads ``grad_reads`` and the outputs' gradients, all optional."""
    made = Definition.__new__(Definition)
    made.type = forward.type + "_grad"
    known = {**forward.inputs, **forward.outputs}
    reads = {slot: "*" if known.get(slot) == "*" else "?" for slot in forward.grad_reads}
    made.inputs = {**reads, **{slot + GRAD: "*" if mark == "*" else "?" for slot, mark in forward.outputs.items()}}
    made.outputs = {slot + GRAD: "*" if mark == "*" else "?" for slot, mark in forward.inputs.items()
                    if slot not in forward.traits.get("no_grad", "").split()}
    made.attrs = forward.attrs
    made.infer = forward.infer_grad or infer_like_forward
    made.run = forward.grad
    made.grad = made.make_grad = made.infer_grad = None
    made.grad_reads = {}
    made.traits = {"inplace": forward.traits["grad_inplace"]} if "grad_inplace" in forward.traits else {}
    if "grad_view" in forward.traits:
        made.traits["view"] = forward.traits["grad_view"]
    return made


def infer_like_forward(k):
    """A gradient has the shape, element type and LoD of the variable it is the gradient of."""
    given = k.attrs.get(GRAD_DTYPES, {})
    for slot, names in k.op.outputs.items():
        for index, name in enumerate(names):
            if name:
                meta = k.meta_of(k.attrs[FORWARD][slot.removesuffix(GRAD)][index])
                k.set(slot, meta.shape, given.get(slot, meta.dtype), meta.lod, index)


def grad_name(name):
    """The name of a variable's gradient."""
    return name + GRAD


class Meta:
    """Shape, numpy dtype, LoD (a tuple of offset tuples) and kind of a value.

    Kinds: "dense"; "rows" (an arrays.Rows); "array" (a list of tensors); "raw" (anything else).
    ``known`` holds the values themselves where they follow from shapes alone.
    """

    __slots__ = ("shape", "dtype", "lod", "kind", "known")

    def __init__(self, shape, dtype, lod=(), kind="dense"):
        self.known = None
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.lod = lod
        self.kind = kind

    @property
    def size(self):
        """Number of elements."""
        size = 1
        for one in self.shape:
            size *= one
        return size

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)}" + (f" lod{self.lod}" if self.lod else "")


KIND_OF_TYPE = {VarType.SELECTED_ROWS: "rows", VarType.LOD_TENSOR_ARRAY: "array"}
TYPE_OF_KIND = {kind: type for type, kind in KIND_OF_TYPE.items()}


class NeedsValues(ProgramError):
    """A shape depends on values that are not known while planning: the program must be interpreted."""


class Call:
    """What an op definition sees of one operator: shapes in ``infer``, arrays as well in ``run``."""

    concrete = True

    def __init__(self, op, metas):
        self.op = op
        self.attrs = op.attrs
        self.metas = metas

    def attr(self, name, default=None):
        """One attribute, or the default where it is absent or None."""
        value = self.attrs.get(name)
        return default if value is None else value

    def name(self, slot, index=0):
        """The name of the variable in a slot, or None where the slot is empty."""
        names = self.op.inputs.get(slot) or self.op.outputs.get(slot) or ()
        return names[index] if index < len(names) else None

    def count(self, slot):
        """How many variables a slot holds."""
        return len(self.op.inputs.get(slot) or self.op.outputs.get(slot) or ())

    def has(self, slot):
        """Whether a slot holds a variable (of a gradient: whether it is wanted)."""
        return bool(self.name(slot))

    def meta_of(self, name):
        """The Meta of a variable by name."""
        return self.metas[name]

    def meta_if_known(self, name):
        """The Meta of a variable, or None: for messages, which must not go looking for it."""
        return self.metas.get(name)

    def meta(self, slot, index=0):
        """The Meta of the variable in a slot."""
        return self.meta_of(self.name(slot, index))

    def shape(self, slot, index=0):
        """The shape of the variable in a slot; -1 where only the run will tell (never in ``run``)."""
        return self.meta(slot, index).shape

    def shape_of_forward(self, slot):
        """In a gradient: the shape of a forward variable, whether or not its values are read."""
        return self.meta_of(self.attrs[FORWARD][slot][0]).shape

    def shapes(self, slot):
        """The shapes of all variables in a slot."""
        return [self.shape(slot, i) for i in range(self.count(slot))]

    def dtype(self, slot, index=0):
        """The numpy dtype of the variable in a slot."""
        return self.meta(slot, index).dtype

    def lod(self, slot, index=0):
        """The LoD of the variable in a slot: a tuple of offset tuples, empty where there is none."""
        return self.meta(slot, index).lod

    def known(self, slot, index=0):
        """In ``infer``: the values of a small variable that others' shapes depend on, as a host array.

        None while the program is built. A plan knows only what follows from shapes alone; where that is
        not enough, the program is interpreted and the values are at hand.
        """
        name = self.name(slot, index)
        value = self.meta_of(name).known
        if value is None and self.concrete:
            value = self.metas.value_now(name)
            if value is None:
                raise NeedsValues(f"{self.op}: the shape depends on the values of {name!r}")
        return value

    def set(self, slot, shape, dtype=None, lod=None, index=0, kind="dense"):
        """In ``infer``: say what an output is.

        ``dtype`` defaults to the first input's. ``lod`` defaults to that of the first input with as
        many rows; give ``()`` for none. Absent outputs are passed over.
        """
        name = self.name(slot, index)
        if not name:
            return
        if dtype is None:
            dtype = self._first_input().dtype
        if lod is None:
            lod = self._inherited_lod(shape)
        self.define(name, Meta(shape, dtype, lod, kind))

    def define(self, name, meta):
        """Note the Meta of an output."""
        self.metas[name] = meta

    def _first_input(self):
        for names in self.op.inputs.values():
            for name in names:
                if name:
                    return self.meta_of(name)
        raise ProgramError(f"{self.op}: an op without inputs must say its output's element type")

    def _inherited_lod(self, shape):
        for names in self.op.inputs.values():
            for name in names:
                meta = self.meta_of(name) if name else None
                if meta is not None and meta.lod and meta.shape[:1] == tuple(shape)[:1]:
                    return meta.lod
        return ()

    def fail(self, text):
        """Raise a ProgramError that names the op and the line of the script."""
        raise ProgramError(f"{self.op}: {text}")


class BuildCall(Call):
    """A Call while the program is built: shapes may hold -1, metas come from and go to the variables."""

    concrete = False

    def __init__(self, op):
        super().__init__(op, None)

    def meta_of(self, name):
        """The Meta of a variable of the program."""
        var = self.op.block._var_recursive(name)
        return Meta(var.shape, var._dtype if var._dtype is not None else "float32",
                    ((),) * var.lod_level, KIND_OF_TYPE.get(var.type, "dense"))

    def meta_if_known(self, name):
        """The Meta of a variable that exists."""
        return self.meta_of(name) if self.op.block.find_var(name) is not None else None

    def define(self, name, meta):
        """Give an output variable its shape, type and LoD level; it is made if it does not exist."""
        var = self.op.block.find_var(name)
        if var is None:
            var = self.op.block.create_var(name=name, dtype=meta.dtype)
        var._shape, var._dtype, var.lod_level = meta.shape, meta.dtype, len(meta.lod)
        if meta.kind in TYPE_OF_KIND:
            var.type = TYPE_OF_KIND[meta.kind]


def infer_at_build(op):
    """Infer the outputs of an op that was just added; errors name the op and the script's line."""
    call = BuildCall(op)
    infer(call)
    if call.op.role == 0 and not any(
            is_float(var._dtype) for var in _outputs(op) if var._dtype is not None):
        for var in _outputs(op):
            var.stop_gradient = True


def infer(call):
    """Run an op's shape rule; whatever it trips over becomes a sentence about the op."""
    try:
        find(call.op.type).infer(call)
    except FleetError as error:
        if str(error).startswith("op "):
            raise
        raise type(error)(f"{call.op}: {error}") from error
    except Exception as error:
        raise ProgramError(f"{call.op}: inputs {describe(call, call.op.inputs)} do not fit: "
                           f"{type(error).__name__}: {error}") from error


def describe(call, slots):
    """``X=float32[20, 13], Y=float32[13, 1]``: what the variables in some slots are."""
    words = []
    for slot, names in slots.items():
        for name in names:
            meta = call.meta_if_known(name)
            words.append(f"{slot}={name} {'(unknown)' if meta is None else meta}")
    return ", ".join(words) or "(none)"


def _outputs(op):
    found = (op.block.find_var(name) for name in op.output_arg_names)
    return [var for var in found if var is not None]
