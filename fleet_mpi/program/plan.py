"""Plan: a program compiled for one feed signature and fetch list.

Made once: live ops chosen and fused, shapes inferred, memory laid out, every op bound to its arrays.
Run often: copy the feeds in, make the calls one after the other, copy the fetches out; no names are
looked up. Programs with ops whose output shapes depend on values are interpreted instead, op by op
with the same definitions.
"""

import numpy as np

from fleet_mpi import arrays, settings
from fleet_mpi.errors import Diverged, FleetError, MissingFeed, ProgramError
from fleet_mpi.program import registry
from fleet_mpi.program.fusion import fuse
from fleet_mpi.program.layout import lay_out
from fleet_mpi.program.liveness import body_of, has_effect, is_dynamic, live_ops, reads_of
from fleet_mpi.program.memory import Arena
from fleet_mpi.program.registry import Call, Meta, NeedsValues, describe, find


# Variables of more elements are no shapes, and not worth computing while planning.
MOST_KNOWN = 64


class Clock:
    """How many runs a program has behind it, and on which worker: what random ops draw from."""

    __slots__ = ("step", "worker")

    def __init__(self, worker=0):
        self.step = 0
        self.worker = worker

    @property
    def stream(self):
        """One number for (worker, step)."""
        return (self.worker << 48) | self.step


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
        ops, frame = self.program.blocks[index].ops, self.frame
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
        from fleet_mpi.program.randomness import op_key
        return op_key(self, seed)


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

    def __init__(self, program, scope, xp, clock, arena, interpreted=False):
        self.program, self.scope, self.xp, self.clock, self.arena = program, scope, xp, clock, arena
        self.interpreted, self.before_run = interpreted, []
        self.values = {}
        self.metas = Metas(program, self.values if interpreted else {})
        self.views, self.placed = set(), {}
        self._scratch_user, self._scratch_used = None, 0

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

    def resolve(self, name, op):
        """Find a variable that no op before this one made: it must have a value in the scope."""
        holder = self.scope.find_var(name)
        if holder is not None and holder.tensor.array is not None:
            array = holder.tensor.array
            if arrays.module_of(array) is not self.xp:
                array = arrays.to_module(array, self.xp)
                holder.put(array, holder.tensor.lod_offsets)
            self.metas[name] = Meta(array.shape, array.dtype, holder.tensor.lod_offsets)
            self.values[name] = array
        elif holder is not None and holder.value is not None:
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
            return self.arena.view(buffer.offset, meta.shape, meta.dtype)
        return arrays.empty(meta.shape, meta.dtype, self.xp)

    def keep_persistable(self, name, value, meta, op):
        """Let the scope have a value that an op made while it ran, if it outlives the run."""
        var = op.block.find_var(name)
        if meta.kind == "dense" and var is not None and var.persistable:
            (self.scope.find_var(name) or self.scope.var(name)).put(value, meta.lod)

    def _persistable(self, name, meta):
        holder = self.scope.find_var(name) or self.scope.var(name)
        array = holder.tensor.array
        if array is None or array.shape != meta.shape or array.dtype != meta.dtype \
                or arrays.module_of(array) is not self.xp:
            array = arrays.empty(meta.shape, meta.dtype, self.xp)
        holder.put(array, meta.lod)
        return array


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
    return Meta((), "float32", kind="raw")


def infer_all(ops, frame, nested=False):
    """Infer every op's outputs in order; returns for each op the metas it defines."""
    defined = []
    for op in ops:
        for name in reads_of(op):
            if name and name not in frame.metas:
                frame.resolve(name, op)
        body = body_of(op)
        if body is not None:
            infer_all(body.ops, frame, nested=True)
        before = {name: dict.get(frame.metas, name) for name in op.output_arg_names} if nested else {}
        registry.infer(Call(op, frame.metas))
        if not nested:
            fold(op, frame)
        for name, meta in before.items():
            if meta is not None and meta.shape != frame.metas[name].shape:
                raise NeedsValues(f"{op}: whether {name!r} has shape {meta.shape} depends on a condition")
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
            for index, name in enumerate(names):
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


class Plan:
    """A program bound to arrays for one feed signature and fetch list; see the module's text."""

    def __init__(self, program, scope, feeds, fetches, xp, clock, arena):
        ops = fuse(live_ops(program, fetches), fetches)
        frame = Frame(program, scope, xp, clock, arena)
        frame.metas.update(feeds)
        defined = infer_all(ops, frame)
        lay_out(ops, feeds, fetches, frame)
        # Before the ops are bound: one of them may give the variable another shape and array.
        frame.metas.update(feeds)
        self.feeds = [(name, frame.array_to_feed(name, meta)) for name, meta in feeds.items()]
        self.ops, self.calls = [], []
        for op, metas in zip(ops, defined):
            frame.metas.update(metas)
            call = bind(op, frame)
            if call is not None:
                self.ops.append(op)
                self.calls.append(call)
        self.clock, self.xp, self.before_run = clock, xp, frame.before_run
        self.fetches = [(fetched_value(frame, name), frame.metas[name].lod) for name in fetches]

    def run(self, feed):
        """One step; returns (array, lod) pairs that alias the plan's memory: copy before the next run."""
        self.clock.step += 1
        for name, buffer in self.feeds:
            buffer[...] = feed[name]  # that its type may be cast was checked when the plan was made
        calls = iter(self.calls)
        try:
            # log(0) and the like are for FLAGS_check_nan_inf to find, not for numpy to warn of.
            with np.errstate(all="ignore"):
                for call in calls:
                    call()
        except FleetError:
            raise
        except Exception as error:
            raise failure(self.ops[len(self.calls) - calls.__length_hint__() - 1], error) from error
        return self.fetches


class DevicePlan(Plan):
    """A Plan whose arrays live on a device: feeds are copied there."""

    def run(self, feed):
        """As Plan.run, with host feeds moved to the device first."""
        return super().run({name: arrays.to_module(value, self.xp) for name, value in feed.items()})


class InterpretedPlan:
    """Runs op by op, binding each when its turn comes: for shapes that depend on values."""

    before_run = ()

    def __init__(self, program, scope, feeds, fetches, xp, clock, arena):
        self.ops = live_ops(program, fetches)
        self.make_frame = lambda: Frame(program, scope, xp, clock, arena, interpreted=True)
        self.metas, self.names, self.clock, self.xp = feeds, fetches, clock, xp

    def run(self, feed):
        """One step; returns (array, lod) pairs."""
        self.clock.step += 1
        frame = self.make_frame()
        for name, meta in self.metas.items():
            frame.metas[name] = meta
            frame.array_to_feed(name, meta)[...] = arrays.to_module(np.array(feed[name], dtype=meta.dtype), self.xp)
        with np.errstate(all="ignore"):
            interpret(self.ops, frame)
        return [(fetched_value(frame, name), frame.metas[name].lod) for name in self.names]


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


def make_plan(program, scope, feeds, fetches, xp, clock, arena):
    """The plan for a program: bound once, or interpreted where shapes depend on values."""
    if not is_dynamic(live_ops(program, fetches)):
        try:
            return (Plan if xp is np else DevicePlan)(program, scope, feeds, fetches, xp, clock, arena)
        except NeedsValues:
            pass
    return InterpretedPlan(program, scope, feeds, fetches, xp, clock, arena)


def fetched_value(frame, name):
    """The value of a fetched variable."""
    if name not in frame.values:
        holder = frame.scope.find_var(name)
        if holder is None or holder.tensor.array is None:
            known = [*frame.program.global_block().vars, *frame.values]
            raise ProgramError(f"fetch_list: no variable {name!r} has a value in this program or scope; "
                               + registry.nearest(name, known))
        frame.resolve(name, None)
    return frame.values[name]
