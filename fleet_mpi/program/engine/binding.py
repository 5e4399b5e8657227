"""Binding: from an op and a frame to the call that runs it; shapes before, values where shapes depend on them."""

import numpy as np

from fleet_mpi import arrays, settings
from fleet_mpi.errors import Diverged, FleetError, ProgramError
from fleet_mpi.program.engine.frame import Frame
from fleet_mpi.program.engine.fusion import fuse_training
from fleet_mpi.program.engine.liveness import body_of, has_effect, reads_of
from fleet_mpi.program.engine.memory import Arena
from fleet_mpi.program.engine.randomness import op_key
from fleet_mpi.program.graph import registry
from fleet_mpi.program.graph.registry import Call, NeedsValues, describe, find

# Variables of more elements are no shapes, and not worth computing while planning.
MOST_KNOWN = 64


class BoundCall(Call):
    """A Call with arrays: what ``run`` and ``grad`` of an op definition get."""

    def __init__(self, op, frame):
        super().__init__(op, frame.metas)
        self.frame = frame
        self.xp = frame.xp

    @property
    def clock(self):
        """The run count, for random ops."""
        return self.frame.clock

    @property
    def program(self):
        """The program being run (its seed, its other blocks)."""
        return self.op.block.program

    @property
    def scope(self):
        """The scope of this run."""
        return self.frame.scope

    def __getitem__(self, slot):
        """The value in a slot: an array, Rows, or a list of tensors; None where the slot is empty."""
        return self.value(slot)

    def value(self, slot, index=0):
        """The value of one variable of a slot."""
        name = self.name(slot, index)
        return self.frame.values[name] if name else None

    def all(self, slot):
        """The values of all variables of a slot; None for those that are absent."""
        return [self.value(slot, i) for i in range(self.count(slot))]

    def put(self, slot, value, index=0, meta=None):
        """Let an output be this value instead of the array laid out for it."""
        name = self.name(slot, index)
        if name:
            self.frame.values[name] = value
            if meta is not None:
                self.metas[name] = meta
                self.frame.keep_persistable(name, value, meta, self.op)

    def view(self, slot, view):
        """Let an output be a view of an input; where that is not safe, return the call that copies."""
        name = self.name(slot)
        if self.frame.is_view(name):
            self.frame.values[name] = view
            return None
        out, xp = self.value(slot), self.xp
        return lambda: xp.copyto(out, view)

    def scratch(self, shape, dtype):
        """Memory whose contents last for one call of this op only; several per op do not overlap."""
        return self.frame.scratch(self, shape, dtype)

    def keep(self, shape, dtype):
        """Memory of this op alone, kept from run to run."""
        return arrays.empty(shape, dtype, self.xp)

    def bind_block(self, index):
        """The call that runs a nested block once."""
        ops, frame = fuse_training(self.program.blocks[index].ops), self.frame
        return (lambda: interpret(ops, frame)) if frame.interpreted else bind_all(ops, frame)

    def before_run(self, make_room):
        """Have ``make_room`` called before every run; it returns True if it replaced arrays of the scope,
        then the plan is made anew."""
        if not self.frame.interpreted:
            self.frame.before_run.append(make_room)
        elif make_room():
            self.frame.refresh()

    def random_key(self, seed=0):
        """The key of this op's random numbers: (seed of the op or the program, name of its output)."""
        return op_key(self, seed)


def infer_all(ops, frame, nested=False):
    """Infer every op's outputs in order; returns for each op the metas it defines."""
    defined = []
    for op in ops:
        for name in reads_of(op):
            if name and frame.lacks(name):
                frame.resolve(name, op)
        body = body_of(op)
        if body is not None:
            enter = find(op.type).traits.get("enter")
            if enter is not None:
                enter(Call(op, frame.metas))
            infer_all(body.ops, frame, nested=True)
        before = {name: dict.get(frame.metas, name) for name in op.output_arg_names} if nested else {}
        registry.infer(Call(op, frame.metas))
        frame.metas.guessed.difference_update(op.output_arg_names)
        if not nested:
            fold(op, frame)
        for name, meta in before.items():
            if meta is not None and (meta.shape, meta.dtype) != (frame.metas[name].shape, frame.metas[name].dtype):
                raise NeedsValues(f"{op}: whether {name!r} is {meta} depends on a condition")
        defined.append([(name, frame.metas[name]) for name in op.output_arg_names if name in frame.metas])
    return defined


def fold(op, frame):
    """Compute now what follows from shapes alone, as ``shape(x)[0]`` does: later shapes may depend on it."""
    outputs = [frame.metas[name] for name in op.output_arg_names if name in frame.metas]
    known = {name: frame.metas[name].known for name in op.input_arg_names}
    if (any(value is None for value in known.values()) or not known and not find(op.type).traits.get("constant")
            or any(meta.kind != "dense" or meta.size > MOST_KNOWN or meta.dtype.kind == "f" for meta in outputs)
            or body_of(op) is not None or "seed" in op.attrs or has_effect(op)):
        return
    small = Frame(frame.program, frame.scope, np, frame.clock, Arena(), interpreted=True)
    small.metas.update({name: frame.metas[name] for name in [*known, *op.output_arg_names]})
    small.values.update(known)
    run = bind(op, small)
    if run is not None:
        run()
    for name in op.output_arg_names:
        frame.metas[name].known = small.values[name]


def bind_all(ops, frame):
    """Bind ops in order; returns one call that runs them all (used for nested blocks)."""
    calls = [call for call in (bind(op, frame) for op in ops) if call is not None]

    def run():
        for call in calls:
            call()
    return run


def bind(op, frame):
    """Bind one op to its arrays: the call that runs it, or None where nothing needs to run."""
    for name in op.output_arg_names:
        if name and name in frame.metas:
            frame.allocate_output(name, op)
    call = BoundCall(op, frame)
    try:
        run = find(op.type).run(call)
    except FleetError:
        raise
    except Exception as error:
        raise ProgramError(f"{op}: cannot be bound to {describe(call, op.inputs)}: "
                           f"{type(error).__name__}: {error}") from error
    if run is not None and settings.get("FLAGS_check_nan_inf"):
        return checked(run, call)
    return run


def checked(run, call):
    """The same call, looking at its floating-point results afterwards."""
    def run_and_check():
        run()
        for slot, names in call.op.outputs.items():
            for name in names:
                value = call.frame.values.get(name)
                value = getattr(value, "values", value)
                if value is not None and getattr(value, "dtype", np.dtype(int)).kind == "f":
                    _require_finite(call, slot, name, value)
    return run_and_check


def _require_finite(call, slot, name, value):
    bad = int((~call.xp.isfinite(value)).sum())
    if bad:
        raise Diverged(f"{call.op}: output {slot}={name!r} holds {bad} value(s) that are NaN or infinite "
                       f"out of {value.size} (inputs: {describe(call, call.op.inputs)}; "
                       f"step {call.clock.step})")


def interpret(ops, frame):
    """Infer, bind and run each op in turn."""
    for op in ops:
        for name in reads_of(op):
            if name and name not in frame.values:
                frame.resolve(name, op)
        if not find(op.type).traits.get("dynamic"):
            registry.infer(Call(op, frame.metas))
        run = bind(op, frame)
        try:
            if run is not None:
                run()
        except FleetError:
            raise
        except Exception as error:
            raise failure(op, error) from error


def failure(op, error):
    """The error to raise where an op's call raised one of Python's or numpy's own."""
    return ProgramError(f"{op}: failed: {type(error).__name__}: {error}")
