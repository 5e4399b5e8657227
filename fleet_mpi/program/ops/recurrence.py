"""A body that runs once for every step of a sequence of equal length, handing states from step to step (``recurrent``).

The steps lie along the first dimension of ``inputs`` and ``outputs``. Where the shapes are known before the run, the
body is bound once and runs over the same arrays at every step; else it is interpreted, step by step. How its gradient
block is built: program/build/nested_gradients.py.
"""

from fleet_mpi import arrays
from fleet_mpi.program.build.nested_gradients import BodyGradient
from fleet_mpi.program.graph.registry import FORWARD, GRAD, Meta, NeedsValues, op
from fleet_mpi.program.ops.control_flow import LEFT_FOR_GRADIENT, name_for_gradient
from fleet_mpi.program.ops.nested_gradients import Kept, added

# The variables of the body that the op fills and takes, as attributes.
NAMES = {"step_inputs": [], "ex_states": [], "states": [], "step_outputs": []}


def enter_steps(k):
    """While planning, before the body is inferred: its inputs are slices, its states like the first ones."""
    for i, name in enumerate(k.attr("step_inputs")):
        meta = k.meta("inputs", i)
        k.define(name, Meta(meta.shape[1:], meta.dtype))
    for i, name in enumerate(k.attr("ex_states")):
        k.define(name, Meta(k.shape("initial_states", i), k.dtype("initial_states", i)))


def step_count(k):
    """How many steps there are; all inputs must agree."""
    counts = {shape[0] for shape in k.shapes("inputs")}
    if k.concrete and len(counts) != 1:
        k.fail(f"expected inputs with equally many steps, got {sorted(counts)} of {k.op.input('inputs')}")
    return next(iter(counts))


def inner_meta(k, name):
    """The Meta of a variable of the body, or None where it is not known yet."""
    if k.concrete:
        return dict.get(k.metas, name)
    var = k.op.block.program.blocks[k.attr("sub_block")].vars[name]
    return Meta(var.shape, var._dtype)


@op("recurrent", "inputs* initial_states* parameters*", "outputs* step_scopes?", enter=enter_steps,
    attrs={**NAMES, "reverse": False, "kept": [], "kept_shapes": []})
class Recurrent:
    """The body for every step; ``outputs`` are the values of ``step_outputs`` at all steps, one behind the other.

    ``states`` are what ``ex_states`` hold at the next step; with ``reverse`` the last step is the first.
    """

    def infer(k):
        """[steps, ...] of each output."""
        count = step_count(k)
        for i, name in enumerate(k.attr("step_outputs")):
            meta = inner_meta(k, name)
            if meta is not None:
                k.set("outputs", (count, *meta.shape), meta.dtype, (), i)
        k.set("step_scopes", (), "float32", (), kind="raw")

    def run(k):
        """Bind the body, then go over the steps."""
        return (InterpretedSteps if k.frame.interpreted else PlannedSteps)(k).forward

    def make_grad(walk, op, grads):
        """Through every step; from now on the op keeps what that needs."""
        name_for_gradient(op, "step_scopes")
        made = _gradient_block(walk, op, grads["outputs"])
        if made is not None:
            values, shapes = made.kept()
            op.attrs["kept"] = sorted({*op.attrs["kept"], *values})
            op.attrs["kept_shapes"] = sorted({*op.attrs["kept_shapes"], *shapes})


def _gradient_block(walk, op, grads):
    wanted = [name for name, outer in zip(op.attrs["step_inputs"], op.input("inputs")) if outer in walk.wanted]
    leaving = [name for name, grad in zip(op.attrs["step_outputs"], grads) if grad]
    leaving = list(dict.fromkeys([*leaving, *op.attrs["states"]]))
    made = BodyGradient(walk, op, [*wanted, *op.attrs["ex_states"]], leaving)
    made.build(())
    return made if _append_grad(walk, op, grads, made) else None


def _append_grad(walk, op, grads, made):
    """Add ``recurrent_grad``; returns whether anything flows."""
    parts = {}
    for slot, names, inside in (("inputs", op.input("inputs"), op.attrs["step_inputs"]),
                                ("initial_states", op.input("initial_states"), op.attrs["ex_states"]),
                                ("parameters", *2 * [[name for name in made.sources if made.taken[name]]])):
        parts[slot] = [(name, walk.contribution(name) if made.taken.get(one) else "", made.taken.get(one, ""))
                       for name, one in zip(names, inside)]
    if not any(part for some in parts.values() for _, part, _ in some):
        return False
    forward = {slot: [name for name, _, _ in some] for slot, some in parts.items()}
    added_op = walk.block.append_op(
        "recurrent_grad",
        {"step_scopes": op.output("step_scopes"), "outputs" + GRAD: grads},
        {slot + GRAD: [part for _, part, _ in some] for slot, some in parts.items()},
        {**{name: op.attrs[name] for name in (*NAMES, "reverse")}, "sub_block": made.block.idx, FORWARD: forward,
         "given": [made.given.get(name, "") for name in (*op.attrs["step_outputs"], *op.attrs["states"])],
         "taken": {slot: [taken for _, _, taken in some] for slot, some in parts.items()}})
    added_op.site = op.site
    for some in parts.values():
        for name, part, _ in some:
            if part:
                walk.add(name, part, added_op)
    return True


class Steps:
    """A bound ``recurrent``: the body, and the arrays it is given and gives."""

    def __init__(self, k):
        self.k, self.xp, self.values, self.metas = k, k.xp, k.frame.values, k.frame.metas
        self.count = step_count(k)
        self.order = range(self.count - 1, -1, -1) if k.attr("reverse") else range(self.count)
        self.inputs = list(zip(k.attr("step_inputs"), k.all("inputs")))
        self.states = list(zip(k.attr("ex_states"), k.attr("states")))
        self.outputs = list(enumerate(k.attr("step_outputs")))
        self.first = list(zip(k.attr("ex_states"), k.all("initial_states")))

    def forward(self):
        """Go over all steps."""
        self.begin()
        for name, value in self.first:
            self.set(name, value)
        turns = self.k.clock.turns()
        for step in self.order:
            next(turns)
            for name, value in self.inputs:
                self.set(name, value[step])
            self.body()
            for i, name in self.outputs:
                self.give(i, step, self.values[name])
            # Copied before any is replaced: a state may be another one's old value.
            after = [self.values[new].copy() for _, new in self.states]
            self.keep(step)
            for (old, _), value in zip(self.states, after):
                self.set(old, value)
        turns.close()
        self.end()


class PlannedSteps(Steps):
    """The body bound once; what its gradient needs is copied, for every step, into memory of the op."""

    def __init__(self, k):
        super().__init__(k)
        for name in (*k.attr("step_inputs"), *k.attr("ex_states")):
            self.values[name] = k.keep(self.metas[name].shape, self.metas[name].dtype)
        self.body = k.bind_block(k.attr("sub_block"))
        self.given = k.all("outputs")
        self.tape = [(one, k.keep((self.count, *one.shape), one.dtype)) for one in self._arrays_to_keep()]
        k.put("step_scopes", self.tape)

    def _arrays_to_keep(self):
        """The arrays that the gradient finds as a step left them; those of a loop within are that loop's memory."""
        found = []
        for name in self.k.attr("kept") if self.k.has("step_scopes") else ():
            kind, value = self.metas[name].kind, self.values[name]
            if kind not in ("dense", "raw"):
                raise NeedsValues(f"{self.k.op}: {name!r} is not a plain array")
            found += [value] if kind == "dense" else [memory for _, memory in value]
        return found

    def begin(self):
        """Nothing to make."""

    end = begin

    def set(self, name, value):
        """Copy into the array that the body is bound to."""
        self.xp.copyto(self.values[name], value)

    def give(self, i, step, value):
        """Copy into the output's place for this step."""
        self.xp.copyto(self.given[i][step], value)

    def keep(self, step):
        """Copy what the gradient needs."""
        for array, memory in self.tape:
            self.xp.copyto(memory[step], array)


class InterpretedSteps(Steps):
    """The body interpreted at every step; its values are taken out of the frame and kept as they are."""

    def __init__(self, k):
        super().__init__(k)
        self.body = k.bind_block(k.attr("sub_block"))

    def begin(self):
        """Results and tape are new."""
        self.given, self.tape = [[None] * self.count for _ in self.outputs], [None] * self.count

    def set(self, name, value):
        """Put a copy into the frame."""
        self.values[name] = value.copy()
        self.metas[name] = Meta(value.shape, value.dtype)

    def give(self, i, step, value):
        """Note the value of this step."""
        self.given[i][step] = value.copy()

    def keep(self, step):
        """Take what the gradient needs."""
        if self.k.has("step_scopes"):
            self.tape[step] = Kept(self.k.frame, ())
            self.tape[step].take(self.k.frame, self.k.attr("kept"), self.k.attr("kept_shapes"))

    def end(self):
        """Hand out the results."""
        for i, some in enumerate(self.given):
            made = self.xp.stack(some)
            self.k.put("outputs", made, i, Meta(made.shape, made.dtype))
        self.k.put("step_scopes", self.tape, meta=LEFT_FOR_GRADIENT)


def enter_step_gradients(k):
    """While planning, before the gradient block is inferred: what is given to it is like the body's variables."""
    for name, grad in zip([*k.attr("step_outputs"), *k.attr("states")], k.attr("given")):
        if grad:
            k.define(grad, Meta(k.meta_of(name).shape, k.meta_of(name).dtype))


@op("recurrent_grad", "step_scopes outputs@GRAD*", "inputs@GRAD* initial_states@GRAD* parameters@GRAD*",
    attrs={**NAMES, "reverse": False, "given": [], "taken": {}}, enter=enter_step_gradients)
class RecurrentGrad:
    """The gradient block for every step, in the opposite order."""

    def infer(k):
        """Like the variables; rows where the gradient block gives rows."""
        block = k.op.block.program.blocks[k.attr("sub_block")]
        for slot, names in k.attrs[FORWARD].items():
            for i, name in enumerate(names):
                meta, inner = k.meta_of(name), block.vars.get(k.attr("taken")[slot][i])
                rows = slot == "parameters" and inner is not None and inner.type.value == "selected_rows"
                k.set(slot + GRAD, meta.shape, meta.dtype, (), i, "rows" if rows else "dense")

    def run(k):
        """Bind the gradient block, then go back over the steps."""
        return (InterpretedBack if k.frame.interpreted else PlannedBack)(k).backward


class Back:
    """A bound ``recurrent_grad``."""

    def __init__(self, k):
        self.k, self.xp, self.values, self.metas = k, k.xp, k.frame.values, k.frame.metas
        self.count = k.meta_of(k.attrs[FORWARD]["inputs"][0]).shape[0]
        self.order = range(self.count) if k.attr("reverse") else range(self.count - 1, -1, -1)
        self.taken = k.attr("taken")
        outputs = len(k.attr("step_outputs"))
        self.of_outputs = [(grad, k.value("outputs" + GRAD, i)) for i, grad in enumerate(k.attr("given")[:outputs])
                           if grad and k.value("outputs" + GRAD, i) is not None]
        self.of_states = k.attr("given")[outputs:]
        self.parts = [grad for grad in dict.fromkeys(k.attr("given")) if grad]
        self.slices = [(out, taken) for out, taken in zip(k.all("inputs" + GRAD), self.taken["inputs"])
                       if out is not None]

    def backward(self):
        """Go back over all steps."""
        for out in self._arrays_of("inputs"):
            out.fill(0)
        after, totals = [None] * len(self.of_states), [None] * len(self.taken["parameters"])
        for step in self.order:
            self.restore(step)
            self._give(step, after)
            self.block()
            after = [self._copy_of(taken) for taken in self.taken["initial_states"]]
            for out, taken in self.slices:
                if taken in self.values:
                    self.xp.copyto(out[step], self.values[taken])
            totals = [added(total, self.values.get(taken)) for total, taken in zip(totals, self.taken["parameters"])]
            self.forget()
        self._hand_out("initial_states", after)
        self._hand_out("parameters", totals)

    def _arrays_of(self, slot):
        return [one for one in self.k.all(slot + GRAD) if one is not None]

    def _copy_of(self, name):
        value = self.values.get(name) if name else None
        return None if value is None else value.copy()

    def _give(self, step, after):
        """The gradients of what the body leaves: of results at this step, and of states from the step after it."""
        sums = dict.fromkeys(self.parts)
        for grad, whole in self.of_outputs:
            sums[grad] = added(sums[grad], whole[step])
        for grad, value in zip(self.of_states, after):
            if grad:
                sums[grad] = added(sums[grad], value)
        for grad, value in sums.items():
            self.set(grad, value)

    def _hand_out(self, slot, values):
        for i, value in enumerate(values):
            out = self.k.value(slot + GRAD, i) if not isinstance(value, arrays.Rows) else None
            if out is not None:
                self.xp.copyto(out, 0 if value is None else value)
            elif isinstance(value, arrays.Rows):
                meta = self.metas[self.k.attrs[FORWARD][slot][i]]
                self.k.put(slot + GRAD, value, i, Meta(meta.shape, meta.dtype, kind="rows"))


class PlannedBack(Back):
    """The gradient block bound once; what a step had is copied back to where the body left it."""

    def __init__(self, k):
        super().__init__(k)
        for name in self.parts:
            self.values[name] = k.keep(self.metas[name].shape, self.metas[name].dtype)
        self.tape = k["step_scopes"]
        self.block = k.bind_block(k.attr("sub_block"))
        if any(isinstance(self.values.get(name), arrays.Rows) for name in self.taken["parameters"]):
            raise NeedsValues(f"{k.op}: a gradient has rows")

    def restore(self, step):
        """Copy what the step had."""
        for array, memory in self.tape:
            self.xp.copyto(array, memory[step])

    def set(self, name, value):
        """Copy into the array that the block is bound to."""
        self.xp.copyto(self.values[name], 0 if value is None else value)

    def forget(self):
        """Nothing: the next step writes the same arrays."""


class InterpretedBack(Back):
    """The gradient block interpreted at every step."""

    def __init__(self, k):
        super().__init__(k)
        self.block = k.bind_block(k.attr("sub_block"))
        self.locals = list(k.program.blocks[k.attr("sub_block")].vars)
        self.names = dict(zip(k.attr("given"), [*k.attr("step_outputs"), *k.attr("states")]))

    def restore(self, step):
        """Put back what the step had."""
        self.k["step_scopes"][step].restore(self.k.frame)

    def set(self, name, value):
        """Let a variable of the block be this array."""
        like = self.metas[self.names[name]]
        self.values[name] = self.xp.zeros(like.shape, like.dtype) if value is None else value
        self.metas[name] = Meta(self.values[name].shape, self.values[name].dtype)

    def forget(self):
        """Drop the block's variables."""
        for name in self.locals:
            self.values.pop(name, None)
