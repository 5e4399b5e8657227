"""Backward through a body that runs any number of times: not at all, once (a branch), or again and again (a loop).

Every body has one gradient block. It takes the gradients of what the body left behind (its *carried* variables, which
lie around it), and gives, for one turn, the gradients of what they were before and of what the body only read. The op
that runs it goes over the turns from the last to the first: gradients of carried variables are handed from turn to
turn, those of variables that were only read, parameters above all, are added up. A carried variable of a body that did
not run hands its gradient on unchanged. Gradients of tensor arrays are lists that all blocks share, changed in place.

What is kept of each turn, for the gradient block to read, is named here (``kept``): only variables of the body itself
and of branches within it. A variable around the body never has to be kept: value_copies.py puts what it held into the
body. How it runs: program/ops/nested_gradients.py.
"""

from fleet_mpi.program.build.backward import Walk
from fleet_mpi.program.build.value_copies import ValueCopies
from fleet_mpi.program.graph.program import outside_names
from fleet_mpi.program.graph.registry import FORWARD, GRAD
from fleet_mpi.program.graph.types import VarType, is_float


class BodyGradient:
    """The gradient block of the body of one op, built by the Walk over the block that the op stands in.

    ``entering`` are variables of the body that the op itself fills at each turn, ``leaving`` those it takes from it.
    """

    def __init__(self, walk, op, entering=(), leaving=()):
        program = op.block.program
        self.walk, self.op = walk, op
        self.body = program.blocks[op.attrs["sub_block"]]
        self.block = program._create_gradient_block(self.body)
        self.sources = self._sources(program)
        self.inner = Walk(self.block, walk.stopped, {*self.sources, *entering}, self.body, f"@BLOCK@{self.block.idx}",
                          ValueCopies(self.body, walk.copies, op))
        self.given, self.taken = {}, {}
        self.leaving, self.entering = leaving, entering

    def _sources(self, program):
        """The variables around the body that a gradient may flow to, what it writes first."""
        names = dict.fromkeys([*self.op.output("Out"), *sorted(outside_names(program, self.op))])
        return [name for name in names if name in self.walk.wanted and self._is_float(name)]

    def _is_float(self, name):
        var = self.walk.block.find_var(name)
        return var is not None and var._dtype is not None and is_float(var._dtype)

    def is_array(self, name):
        """Whether a variable is a tensor array."""
        return self.walk.block._var_recursive(name).type == VarType.LOD_TENSOR_ARRAY

    def build(self, carried):
        """Walk the body from these of its outputs; fills ``given`` and ``taken``: variable -> its gradient inside."""
        targets = [*carried, *self.leaving]
        for name in targets:
            self._give(name)
        self.inner.go(targets, None, None)
        for name in dict.fromkeys([*self.sources, *self.entering]):
            self.taken[name] = self.inner.gradient(name) or ""

    def _give(self, name):
        """Let the gradient of a variable come from outside the gradient block."""
        grad = self.inner.grad_name(name)
        self.inner.add(name, grad)
        var = self.block._var_recursive(name)
        if var.type == VarType.LOD_TENSOR_ARRAY:
            return
        self.given[name] = grad
        self.inner.counts[name] = 1
        self.block.create_var(name=grad, shape=var._shape, dtype=var._dtype)

    def kept(self):
        """(variables whose values a turn must keep, variables whose shapes it must keep)."""
        inside = _variables_within(self.body)
        values, shapes = _needs(self.block)
        return sorted(inside & values), sorted(inside & shapes | inside & values)


def append_nested_grad(walk, op, grads, reads, carry_all):
    """Add ``<type>_grad`` of an op with a body; it reads the slots ``reads`` of the forward op.

    ``carry_all``: every output that may have a gradient gets one in the body, since a later turn may read it.
    """
    given = dict(zip(op.output("Out"), grads["Out"]))
    made = BodyGradient(walk, op)
    made.build([name for name in made.sources if name in given and (carry_all or given[name])])
    carried = [name for name in made.given]
    read_only = [name for name in made.sources if name not in made.given and made.taken[name]
                 and not made.is_array(name)]
    arrays = [name for name in made.sources if made.taken[name] and made.is_array(name)]
    if not carried and not read_only and not arrays:
        return None
    for name in carried:
        walk.end(name)
    return _append(walk, op, made, given, carried, read_only, arrays, reads)


def _append(walk, op, made, given, carried, read_only, arrays, reads):
    parts = {name: walk.contribution(name) for name in (*carried, *read_only)}
    names = list(parts)
    inputs = {**{slot: [walk.value(op, name) for name in op.inputs.get(slot) or op.outputs[slot]] for slot in reads},
              "Out" + GRAD: [given.get(name, "") for name in carried]}
    attrs = {"sub_block": made.block.idx, "carried": len(carried), FORWARD: {"X": names, "Out": carried},
             "given": [made.given[name] for name in carried], "taken": [made.taken[name] for name in names],
             **{name: op.attrs[name] for name in ("is_scalar_condition",) if name in op.attrs}}
    array_grads = [walk.open_array(name) for name in arrays]
    added = walk.block.append_op(op.type + "_grad", inputs,
                                 {"X" + GRAD: list(parts.values()), "Array" + GRAD: array_grads}, attrs)
    added.site = op.site
    for name, part in parts.items():
        walk.add(name, part, added)
    return made


def _variables_within(body):
    """The variables of a body and of the branches in it; what loops in it need, they keep themselves."""
    program, names = body.program, set(body.vars)
    for op in body.ops:
        if "sub_block" in op.attrs:
            names |= _variables_within(program.blocks[op.attrs["sub_block"]])
    return names


def _needs(block):
    """(variables whose values, variables whose shapes) the ops of a gradient block need, in branches too."""
    values, shapes = set(), set()
    for op in block.ops:
        values.update(op.input_arg_names)
        shapes.update(name for names in op.attrs.get(FORWARD, {}).values() for name in names)
        if "sub_block" in op.attrs:
            within = block.program.blocks[op.attrs["sub_block"]]
            own = set() if op.type == "conditional_block_grad" else _variables_within(
                block.program.blocks[within.forward_block_idx])
            for names, inner in zip((values, shapes), _needs(within)):
                names |= inner - own  # a loop within keeps its own
    return values, shapes
