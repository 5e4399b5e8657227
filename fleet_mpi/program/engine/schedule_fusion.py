"""Which ops of a plan are a learning-rate schedule's: each unbroken run of them becomes one op. Programs stay as
written.

Only ops that ``program/build/schedules.py`` made are taken, known by their name scope: those that a script writes
itself keep the float32 arithmetic of their ops. What the one op computes is in ``ops/schedules.py``.
"""

from fleet_mpi.program.graph.operator import SCOPE, Operator
from fleet_mpi.program.graph.program import outside_names
from fleet_mpi.program.ops.schedules import ONE, TWO

MARK = "learning_rate_decay"
TYPES = {*ONE, *TWO, "fill_constant"}


def is_of_schedule(op):
    """Whether an op is one of a schedule's, and so are those in its body."""
    if f"/{MARK}/" not in op.attrs.get(SCOPE, ""):
        return False
    return op.type in TYPES or op.type == "conditional_block" and all(
        is_of_schedule(inner) for inner in op.block.program.blocks[op.attrs["sub_block"]].ops)


def fuse_schedules(ops, fetches=()):
    """The ops, with one ``fused_schedule`` for every run of a schedule's."""
    if not any(map(is_of_schedule, ops)):
        return ops
    found, run = [], []
    for one in [*ops, None]:
        if one is not None and is_of_schedule(one):
            run.append(one)
            continue
        if run:
            found.append(_fused(run, _wanted(run, ops, fetches)))
        run = []
        if one is not None:
            found.append(one)
    return found


def _wanted(run, ops, fetches):
    """The names that others than the ops of a run may read."""
    members = set(run)
    return {*fetches}.union(*({*op.input_arg_names, *outside_names(op.block.program, op)}
                              for op in ops if op not in members))


def _fused(run, wanted):
    block, reads, made, outs = run[0].block, {}, set(), {}
    for op in run:
        is_conditional = op.type == "conditional_block"
        # What a body may leave as it was is read, so that it is known in either case.
        for name in [*op.input_arg_names, *outside_names(block.program, op),
                     *(op.output("Out") if is_conditional else ())]:
            if name not in made:
                reads[name] = None
        for name in op.output("Out"):
            made.add(name)
            var = block.vars.get(name)
            if name in wanted or var is None or var.persistable:
                outs[name] = None
    return Operator(block, "fused_schedule", {"X": list(reads)}, {"Out": list(outs)}, {"ops": tuple(run)}, run[0].site)
