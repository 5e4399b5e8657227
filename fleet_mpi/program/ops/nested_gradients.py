"""Ops that run the gradient block of a body: once for every turn of the body, from the last to the first.

How such a block is built, and which variables it takes and gives: program/build/nested_gradients.py.
"""

from fleet_mpi import arrays
from fleet_mpi.program.graph.registry import FORWARD, GRAD, Meta, NeedsValues, op
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.ops.combining import joined
from fleet_mpi.program.ops.control_flow import holds


def body_block(k):
    """The gradient block."""
    return k.op.block.program.blocks[k.attr("sub_block")]


def enter_gradients(k):
    """While planning, before the gradient block is inferred: what is given to it is like the carried variables."""
    for name, grad in zip(k.attrs[FORWARD]["Out"], k.attr("given")):
        k.define(grad, k.meta_of(name))


def infer_gradients(k):
    """Like the variables; rows where the gradient block gives rows."""
    block = body_block(k)
    for index, (name, taken) in enumerate(zip(k.attrs[FORWARD]["X"], k.attr("taken"))):
        meta = k.meta_of(name)
        var = block.vars.get(taken)
        rows = var is not None and var.type == VarType.SELECTED_ROWS and index >= k.attr("carried")
        k.set("X" + GRAD, meta.shape, meta.dtype, meta.lod, index, "rows" if rows else "dense")


@op("conditional_block_grad", "Cond* Scope? Out@GRAD*", "X@GRAD* Array@GRAD*",
    attrs={"is_scalar_condition": False, "carried": 0, "given": [], "taken": []}, enter=enter_gradients)
class ConditionalBlockGrad:
    """The gradient block, if the body ran; else carried variables keep their gradients, others get none."""

    infer = infer_gradients

    def run(k):
        """Planned or not, results go into the outputs' own arrays."""
        if k.frame.interpreted:
            return lambda: _turn_of_branch(k, Turns(k))
        return _planned_branch(k)


def ran(k):
    """Whether the body of a branch ran."""
    conditions = k.all("Cond")
    if k.attr("is_scalar_condition"):
        return holds(conditions[0])
    return all(condition.size for condition in conditions)


def _turn_of_branch(k, turns):
    turns.begin()
    if ran(k):
        turns.turn([k.frame.metas[name] for name in k.attrs[FORWARD]["Out"]])
    turns.end()


def _planned_branch(k):
    """The gradient block bound once: it finds the body's values where the body left them."""
    values, xp, count = k.frame.values, k.xp, k.attr("carried")
    given = [k.value("Out" + GRAD, i) for i in range(count)]
    for name, grad in zip(k.attr("given"), given):
        values[name] = k.keep(grad.shape, grad.dtype)
    run_block = k.bind_block(k.attr("sub_block"))
    found = [values.get(name) if name else None for name in k.attr("taken")]
    outs = k.all("X" + GRAD)
    if any(isinstance(one, arrays.Rows) for one in found) or any(out is None for out in outs):
        raise NeedsValues(f"{k.op}: how many rows its gradient has depends on a condition")
    entries = [(values[name], grad) for name, grad in zip(k.attr("given"), given)]

    def run():
        if ran(k):
            for entry, grad in entries:
                xp.copyto(entry, grad)
            run_block()
        for i, (out, value) in enumerate(zip(outs, found)):
            source = value if ran(k) else given[i] if i < count else None
            xp.copyto(out, 0 if source is None else source)
    return run


@op("while_grad", "StepScopes Out@GRAD*", "X@GRAD* Array@GRAD*", attrs={"carried": 0, "given": [], "taken": []},
    dynamic=True)
class WhileGrad:
    """The gradient block for every turn that the loop kept, from the last to the first."""

    infer = infer_gradients

    def run(k):
        """Put back what a turn had, run, hand on."""
        turns = Turns(k)

        def run():
            turns.begin()
            for kept in reversed(k["StepScopes"]):
                kept.restore(k.frame)
                turns.turn(kept.before)
            turns.end()
        return run


class Kept:
    """What a turn of a loop had: values, shapes, and the metas of carried variables before it."""

    def __init__(self, frame, carried):
        self.before = [frame.metas[name] for name in carried]

    def take(self, frame, values, shapes):
        """Take the values out of the frame, so that the next turn makes its own."""
        self.values = {name: frame.values.pop(name) for name in values if name in frame.values}
        self.metas = {name: frame.metas[name] for name in shapes if dict.__contains__(frame.metas, name)}

    def restore(self, frame):
        """Put them back."""
        frame.values.update(self.values)
        frame.metas.update(self.metas)


class Turns:
    """The gradients that go from turn to turn of a body, in the frame of a run."""

    def __init__(self, k):
        self.k, self.xp, self.values, self.metas = k, k.xp, k.frame.values, k.frame.metas
        self.run_block = k.bind_block(k.attr("sub_block"))
        self.locals = list(body_block(k).vars)
        self.given, self.taken = k.attr("given"), k.attr("taken")
        self.carried = k.attr("carried")

    def begin(self):
        """Give the gradients of what the last turn left behind."""
        self.totals = [None] * (len(self.taken) - self.carried)
        self.now = []
        for i, name in enumerate(self.k.attrs[FORWARD]["Out"]):
            grad = self.k.value("Out" + GRAD, i)
            self.now.append(self.zeros(self.metas[name]) if grad is None else grad.copy())

    def turn(self, before):
        """Go over one turn; ``before`` are the metas of carried variables at its begin, where nothing flows to them."""
        for name, value in zip(self.given, self.now):
            self.put(name, value)
        self.run_block()
        found = [self.values.get(name) if name else None for name in self.taken]
        self.now = [self.zeros(meta) if value is None else value.copy()
                    for value, meta in zip(found[:self.carried], before)]
        self.totals = [added(total, value) for total, value in zip(self.totals, found[self.carried:])]
        for name in self.locals:
            self.values.pop(name, None)

    def put(self, name, value):
        """Let a variable of the gradient block be this array."""
        self.values[name] = value
        self.metas[name] = Meta(value.shape, value.dtype)

    def zeros(self, meta):
        """An array without a gradient."""
        return self.xp.zeros(meta.shape, meta.dtype)

    def end(self):
        """Hand the gradients to the ops before the loop."""
        names = self.k.attrs[FORWARD]["X"]
        for i, value in enumerate([*self.now, *self.totals]):
            meta = self.metas[names[i]]
            if value is None:
                value = self.zeros(meta)
            if isinstance(value, arrays.Rows):
                meta = Meta(meta.shape, meta.dtype, kind="rows")
            elif value.shape != meta.shape:  # the loop has given the variable another shape
                meta = Meta(value.shape, value.dtype)
            self.k.put("X" + GRAD, value, i, Meta(meta.shape, meta.dtype, meta.lod, meta.kind))


def added(total, value):
    """The sum of a turn's gradient and those of the turns after it; row gradients are joined."""
    if value is None:
        return total
    if isinstance(value, arrays.Rows):
        value = joined([value])
        return value if total is None else joined([total, value])
    if total is None:
        return value.copy()
    total += value
    return total
