"""Plan: a program compiled for one feed signature and fetch list.

Made once: live ops chosen and fused, shapes inferred, memory laid out, every op bound to its arrays.
Run often: copy the feeds in, make the calls one after the other, copy the fetches out; no names are
looked up. Programs with ops whose output shapes depend on values are interpreted instead, op by op
with the same definitions.
"""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import FleetError, ProgramError
from fleet_mpi.program.engine.binding import bind, failure, infer_all, interpret
from fleet_mpi.program.engine.constants import set_apart
from fleet_mpi.program.engine.frame import Frame
from fleet_mpi.program.engine.fusion import fuse, fuse_training
from fleet_mpi.program.engine.layout import lay_out
from fleet_mpi.program.engine.liveness import is_dynamic, live_ops
from fleet_mpi.program.engine.precision import with_casts
from fleet_mpi.program.graph import registry
from fleet_mpi.program.graph.registry import NeedsValues


class Plan:
    """A program bound to arrays for one feed signature and fetch list; see the module's text."""

    def __init__(self, program, scope, feeds, fetches, xp, clock, arena, notes):
        ops = fuse(fuse_training(ops_for(program, fetches, xp), fetches), fetches)
        frame = Frame(program, scope, xp, clock, arena, notes)
        frame.metas.update(feeds)
        defined = infer_all(ops, frame)
        lay_out(ops, feeds, fetches, frame)
        # Before the ops are bound: one of them may give the variable another shape and array.
        frame.metas.update(feeds)
        self.feeds = [(name, frame.array_to_feed(name, meta)) for name, meta in feeds.items()]
        self.ops, self.calls = [], []
        constants = () if xp is np else set_apart(ops, feeds, frame)
        for op, metas in zip(ops, defined):
            frame.metas.update(metas)
            call = bind(op, frame)
            if op in constants:
                call()
            elif call is not None:
                self.ops.append(op)
                self.calls.append(call)
        self.clock, self.xp, self.notes, self.before_run = clock, xp, notes, frame.before_run
        self.fetches = [(fetched_value(frame, name), frame.metas[name].lod) for name in fetches]

    def run(self, feed):
        """One step; returns (array, lod) pairs that alias the plan's memory: copy before the next run."""
        self.clock.step += 1
        self.take(feed)
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

    def take(self, feed):
        """Copy the fed values in."""
        for name, buffer in self.feeds:
            buffer[...] = feed[name]  # that its type may be cast was checked when the plan was made


class DevicePlan(Plan):
    """A Plan whose arrays live on a device: feeds are copied there, and few calls are large ones."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        # Imported where there is a device: it needs the CUDA kernels.
        from fleet_mpi.program.engine.update_groups import group_updates
        self.ops, self.calls = group_updates(self.ops, self.calls)

    def take(self, feed):
        """Copy the fed values, which are the host's, to the device."""
        for name, buffer in self.feeds:
            self.notes.transfers.upload(feed[name], buffer)


class InterpretedPlan:
    """Runs op by op, binding each when its turn comes: for shapes that depend on values."""

    before_run = ()

    def __init__(self, program, scope, feeds, fetches, xp, clock, arena, notes):
        self.ops = fuse_training(ops_for(program, fetches, xp), fetches)
        self.make_frame = lambda: Frame(program, scope, xp, clock, arena, notes, interpreted=True)
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


def make_plan(program, scope, feeds, fetches, xp, clock, arena, notes):
    """The plan for a program: bound once, or interpreted where shapes depend on values."""
    if not is_dynamic(live_ops(program, fetches)):
        try:
            return (Plan if xp is np else DevicePlan)(program, scope, feeds, fetches, xp, clock, arena, notes)
        except NeedsValues:
            pass
    return InterpretedPlan(program, scope, feeds, fetches, xp, clock, arena, notes)


def ops_for(program, fetches, xp):
    """The live ops; on a device with the casts of mixed precision, which a host would only lose time with."""
    ops = live_ops(program, fetches)
    return ops if xp is np else with_casts(ops)


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
