"""Fusion: pairs of ops that one kernel does better, found when a plan is made. Programs stay as written.

A pair is fused when what the first hands to the second is seen by nobody else. Results are those of the
two ops to the bit (but for the sign of a zero): the kernels keep the order of every sum.
"""

from fleet_mpi.program.engine.schedule_fusion import fuse_schedules
from fleet_mpi.program.graph.operator import Operator
from fleet_mpi.program.graph.program import outside_names
from fleet_mpi.program.graph.registry import FORWARD, GRAD
from fleet_mpi.program.ops.optimize import attributes, out_slot
from fleet_mpi.update_rules import BETA_POWERS, RULES

GRAD_OP = "_grad"


def fuse_training(ops, fetches=()):
    """The ops with schedules and updates as one op each: what an interpreted program and a nested block need too."""
    return fuse_powers(fuse_schedules(ops, fetches))


def fuse_powers(ops):
    """Let an update do what the scale ops after it do with its beta powers; new Operator objects for those."""
    powers = {op.input("X")[0]: position for position, op in enumerate(ops)
              if op.type == "scale" and op.input("X") == op.output("Out")}
    if not powers:
        return ops
    links, replaced = _Links(ops, ()), {}
    for position, op in enumerate(ops):
        for state in RULES[op.type].states if op.type in RULES else ():
            name = next(iter(op.input(state.slot)), None)
            scale = powers.get(name) if state in BETA_POWERS and not op.output(out_slot(state.slot)) else None
            if scale is not None and _moves_on(op, ops[scale], state) and links.touch(name, position, scale) == 2:
                made = replaced.get(position) or _made(op, op.type, op.inputs, op.outputs, op.attrs)
                made.outputs[out_slot(state.slot)] = [name]
                replaced[position], replaced[scale] = made, None
    return [op for op in (replaced.get(i, op) for i, op in enumerate(ops)) if op is not None]


def _moves_on(update, scale, state):
    """Whether the scale op multiplies by the update's own setting."""
    rule = RULES[update.type]
    name, = attributes(rule, {state.initial: 0.0})
    return (scale.attrs.get("scale") == update.attrs.get(name, rule.hypers[state.initial])
            and not scale.attrs.get("bias") and not scale.input("ScaleTensor"))


def fuse(ops, fetches):
    """The ops to run, with fusable pairs replaced by one op each; new Operator objects for those."""
    links = _Links(ops, fetches)
    replaced = {}
    for position, op in enumerate(ops):
        for slot, second_type, in_slot, make in PAIRS.get(op.type, ()):
            partner = links.only_reader(op, slot)
            if partner is None or partner < position or partner in replaced or position in replaced:
                continue
            second, backward = ops[partner], op.type.endswith(GRAD_OP)
            if second.type != second_type or not second.inputs.get(in_slot):
                continue
            # A gradient pair runs where its second op stood: what that one reads besides is made in between.
            # So the first op's reads move down; in a forward pair the second op's writes move up.
            may_move = (links.may_read_later(op.input_arg_names, position, partner) if backward
                        else links.may_write_earlier(second.output_arg_names, position, partner))
            made = make(op, second) if may_move else None
            if made is not None:
                here, gone = (partner, position) if backward else (position, partner)
                replaced[here], replaced[gone] = made, None
    return [op for op in (replaced.get(i, op) for i, op in enumerate(ops)) if op is not None]


class _Links:
    """Who writes and who reads each variable of a list of ops, nested blocks included."""

    def __init__(self, ops, fetches):
        self.fetched = set(fetches)
        self.writers, self.readers = {}, {}
        for position, op in enumerate(ops):
            for name in {*op.input_arg_names, *outside_names(op.block.program, op)}:
                self.readers.setdefault(name, []).append(position)
            # A body may run often, so what it writes counts as written more than once.
            for name in op.output_arg_names + 2 * _written_inside(op):
                self.writers.setdefault(name, []).append(position)

    def only_reader(self, op, slot):
        """The position of the one op that reads this output, if nobody else could tell that it was never made."""
        names = op.outputs.get(slot)
        if not names or not names[0]:
            return None
        name, var = names[0], op.block.find_var(names[0])
        readers = self.readers.get(name, ())
        private = (len(readers) == 1 and len(self.writers[name]) == 1 and name not in self.fetched
                   and not (var is not None and (var.persistable or var.is_data)))
        return readers[0] if private else None

    def touch(self, name, first, last):
        """How many ops from position ``first`` to ``last`` read or write a variable."""
        return len({position for position in (*self.readers.get(name, ()), *self.writers.get(name, ()))
                    if first <= position <= last})

    def may_read_later(self, names, first, second):
        """Whether these can be read at position ``second`` instead of ``first``: nobody writes them until then."""
        return not any(first < writer <= second for name in names for writer in self.writers.get(name, ()))

    def may_write_earlier(self, names, first, second):
        """Whether these can be written at position ``first`` instead of ``second``: until then nobody writes
        them, or reads what they held before (a counter's value of the last step)."""
        return not any(first <= position < second for name in names
                       for position in (*self.writers[name], *self.readers.get(name, ())))


def _written_inside(op):
    if "sub_block" not in op.attrs:
        return []
    names = []
    for inner in op.block.program.blocks[op.attrs["sub_block"]].ops:
        names += inner.output_arg_names + _written_inside(inner)
    return names


def _batch_norm_relu(norm, relu):
    return _made(norm, "fused_batch_norm_act", norm.inputs, {**norm.outputs, "Y": relu.outputs["Out"]}, norm.attrs)


def _relu_batch_norm_grad(relu, norm):
    if any(slot.endswith(GRAD) and slot != "Y" + GRAD and any(names) for slot, names in norm.inputs.items()):
        return None
    inputs = {**norm.inputs, "Y": relu.inputs["Out"], "Y" + GRAD: relu.inputs["Out" + GRAD]}
    return _made(norm, "fused_batch_norm_act_grad", inputs, norm.outputs, _attrs(norm, "Y", relu.inputs["Out"]))


def _add_relu(add, relu):
    return _made(add, "fused_elemwise_activation", add.inputs, {"Out": relu.outputs["Out"]}, add.attrs)


def _relu_add_grad(relu, add):
    """Only for a bias over the last dimension: the gradients of equal shapes are views, which cost nothing."""
    x, y = (add.block.find_var(add.attrs[FORWARD][slot][0]) for slot in ("X", "Y"))
    axis = add.attrs.get("axis", -1)
    if x is None or y is None or len(y.shape) != 1 or len(x.shape) < 2 or axis not in (-1, len(x.shape) - 1) \
            or x.shape[-1] < 1 or tuple(x.shape[-1:]) != tuple(y.shape) or not add.outputs.get("Y" + GRAD):
        return None
    inputs = {"Out": relu.inputs["Out"], "Out" + GRAD: relu.inputs["Out" + GRAD]}
    return _made(add, "fused_elemwise_activation_grad", inputs, add.outputs, _attrs(add, "Out", relu.inputs["Out"]))


def _attrs(op, slot, names):
    return {**op.attrs, FORWARD: {**op.attrs[FORWARD], slot: names}}


def _made(like, type, inputs, outputs, attrs):
    return Operator(like.block, type, inputs, outputs, attrs, like.site)


# By the first op's type: the output handed on, the second op's type, the input that takes it, and what they become.
PAIRS = {
    "batch_norm": [("Y", "relu", "X", _batch_norm_relu)],
    "elementwise_add": [("Out", "relu", "X", _add_relu)],
    "relu_grad": [("X" + GRAD, "batch_norm_grad", "Y" + GRAD, _relu_batch_norm_grad),
                  ("X" + GRAD, "elementwise_add_grad", "Out" + GRAD, _relu_add_grad)],
}
