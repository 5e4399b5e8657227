"""Backward: adds to a program the ops that compute gradients, by walking it from the loss back.

Each forward op gives one ``<type>_grad`` op (or what its ``make_grad`` says). A variable used several
times gets several contributions, summed by a ``sum`` op when its gradient is first needed. The body of a loop
or branch is walked by a Walk of its own: see program/build/nested_gradients.py.
"""

from collections import Counter

from fleet_mpi import notices
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.build.value_copies import ValueCopies
from fleet_mpi.program.graph.program import outside_names, writes_to_outside
from fleet_mpi.program.graph.registry import FORWARD, GRAD, find, grad_name
from fleet_mpi.program.graph.structures import as_list
from fleet_mpi.program.graph.types import Role, VarType, is_float
from fleet_mpi.program.graph.variable import Parameter, Variable


def append_backward(loss, parameter_list=None, no_grad_set=None, callbacks=None, checkpoints=None):
    """Add the gradient ops of ``loss`` to its program; returns [(parameter, gradient)].

    With ``checkpoints`` (variables), only those are kept from the forward pass; what lies between
    them is computed a second time when its gradient is due.
    """
    if not isinstance(loss, Variable):
        raise ProgramError(f"append_backward: expected the loss variable, got {type(loss).__name__}")
    if any(size not in (1, -1) for size in loss.shape):
        raise ProgramError(f"append_backward: the loss {loss.name!r} must be one number, but has shape "
                           f"{loss.shape}: take its mean or sum first")
    program, block = loss.block.program, loss.block.program.global_block()
    with program._with_role(Role.Backward | Role.Loss):
        one = block.append_op("fill_constant", outputs={"Out": [grad_name(loss.name)]},
                              attrs={"shape": [1 if n == -1 else n for n in loss.shape], "value": 1.0,
                                     "dtype": loss.dtype.value})
    params = _parameters(program, parameter_list)
    walk = Walk(block, no_grad_set, sources={param.name for param in params})
    walk.add(loss.name, grad_name(loss.name), one)
    with program._backward_role_guard():
        walk.go([loss.name], checkpoints, callbacks)
        pairs = [(param, walk.gradient(param.name)) for param in params]
    return [(param, block.var(name)) for param, name in pairs if name]


def gradients(targets, inputs, target_gradients=None, no_grad_set=None):
    """Add ops for the gradients of ``targets`` with respect to ``inputs``; None where none flows."""
    targets, inputs = as_list(targets), as_list(inputs)
    if not all(isinstance(one, Variable) for one in targets + inputs):
        raise ProgramError(f"gradients: expected variables as targets and inputs, got {targets!r:.80} and "
                           f"{inputs!r:.80}")
    given = as_list(target_gradients) if target_gradients is not None else [None] * len(targets)
    block = targets[0].block.program.global_block()
    walk = Walk(block, no_grad_set, sources={one.name for one in inputs})
    with block.program._backward_role_guard():
        for target, seed in zip(targets, given):
            if seed is not None:
                walk.add(target.name, seed.name)
            else:
                name = grad_name(target.name)
                ones = block.append_op("fill_any_like", {"X": [target.name]}, {"Out": [name]}, {"value": 1.0})
                walk.add(target.name, name, ones)
        walk.go([target.name for target in targets], None, None)
        names = [walk.gradient(one.name) for one in inputs]
    return [block.var(name) if name else None for name in names]


calc_gradient = gradients


class Walk:
    """One walk back over a block: which variables need gradients, and what has been found for each.

    The gradient ops are added to ``block``. Of a body, ``forward``, that is another block within it, ``suffix``
    ends its gradients' names, and ``copies`` knows the values its ops found; without these, all is in one block.
    """

    def __init__(self, block, no_grad_set, sources, forward=None, suffix="", copies=None):
        self.block = block
        self.forward = forward or block
        self.suffix = suffix
        self.copies = copies or ValueCopies(block)
        self.sources = sources
        self.stopped = {one if isinstance(one, str) else one.name for one in (no_grad_set or ())}
        self.found = {}     # variable -> [(grad name, op that made it; None if it was given)]
        self.renamed = {}   # variable -> its recomputed copy, for what a grad op reads
        self.wanted = set()
        self.rewritten = set()  # variables that get a value more than once
        self.positions = {id(op): position for position, op in enumerate(self.forward.ops)}
        self.writers = {}   # variable -> the op that writes it last before the backward pass
        self.counts = {}    # variable -> contributions named so far
        self.clipped = set()

    def go(self, targets, checkpoints, callbacks):
        """Add the grad ops for everything between the sources and the targets."""
        path = self._path(targets)
        if self.forward is not self.block:
            self._go_over_body(path)
            return
        for segment in self._segments(path, checkpoints):
            if checkpoints:
                self._recompute(segment, checkpoints)
            for op in reversed(segment):
                self._visit(op)
                for callback in callbacks or ():
                    callback(block=self.block, context={})
        self.copies.insert()

    def _go_over_body(self, path):
        """As ``go``, in a body, whose variables may have a gradient from the turn after it: whoever writes one ends
        it."""
        on_path = {id(op) for op in path}
        for op in reversed(self.forward.ops):
            if id(op) in on_path:
                self._visit(op)
            elif "sub_block" not in op.attrs and not op.trains:
                for name in op.output_arg_names:
                    self.end(name)
        self.copies.insert()

    def _path(self, targets):
        """The ops on the way from the sources to the targets, in order; notes who wants a gradient."""
        self.wanted = {name for name, var in self.forward.vars.items()
                       if (name in self.sources or var.is_data and not var.stop_gradient)
                       and name not in self.stopped}
        if self.forward is not self.block:
            self.wanted.update(self.sources)
        forward = []
        for op in self.forward.ops:
            if op.trains:
                continue
            self.writers.update(dict.fromkeys(op.output_arg_names, op))
            if self.wanted.intersection(_reads(op)):
                forward.append(op)
                self.wanted.update(name for name in op.output_arg_names if self._may_flow(name))
        needed, path = set(targets), []
        for op in reversed(forward):
            if needed.intersection(op.output_arg_names):
                path.append(op)
                needed.update(_reads(op))
        self.rewritten = _rewritten(path)
        if self.forward is not self.block:
            self.rewritten.update(writes_to_outside(self.forward))
        return path[::-1]

    def _may_flow(self, name):
        var = self.block.find_var(name)
        return (var is not None and not var.stop_gradient and name not in self.stopped
                and is_float(var._dtype))

    def _visit(self, op):
        definition = find(op.type)
        grads = {slot: [self.gradient(name) or "" for name in names] for slot, names in op.outputs.items()}
        if not any(name for names in grads.values() for name in names):
            return
        # What was found is the gradient of the value this op gave; of the one it replaced, nothing is known yet.
        for name in self.rewritten.intersection(op.output_arg_names):
            self.end(name)
        if definition.make_grad is not None:
            definition.make_grad(self, op, grads)
            return
        if definition.grad is not None:
            self.append_grad(op, grads)

    def end(self, name):
        """Forget the gradient of a variable before an op that replaced its value; of an array, whose gradient is
        one list for all its tensors, nothing is forgotten."""
        if name in self.found and not self._is_array(name):
            self.counts.setdefault(name, len(self.found[name]))
            del self.found[name]

    def open_array(self, name):
        """Let a tensor array have a gradient, an empty list where it is first asked for; returns its name."""
        var = self.block._var_recursive(name)
        grad = var.block.create_var(name=grad_name(name), dtype=var._dtype, type=VarType.LOD_TENSOR_ARRAY)
        if name not in self.found:
            self.add(name, grad.name)
            if var.block is self.forward:
                self.block.append_op("empty_array", outputs={"Out": [grad.name]})
        return grad.name

    def _is_array(self, name):
        var = self.block.find_var(name)
        return var is not None and var.type == VarType.LOD_TENSOR_ARRAY

    def value(self, op, name):
        """The variable that has, while gradients are computed, the value an op found in ``name``, or put there."""
        return self.copies.name(op, self.renamed.get(name, name), after=name not in op.input_arg_names)

    def append_grad(self, op, grads):
        """Add ``<type>_grad`` of a forward op; ``grads`` are its outputs' gradients by slot."""
        definition = find(op.type)
        reads = {slot: self._values(op, slot) for slot in definition.grad_reads}
        inputs = {slot: names for slot, names in reads.items() if names}
        self._warn_of_changed(op, inputs)
        inputs.update({slot + GRAD: names for slot, names in grads.items() if any(names)})
        takes = find(op.type + "_grad").outputs
        outputs = {slot + GRAD: [self.contribution(name) for name in names]
                   for slot, names in op.inputs.items() if slot + GRAD in takes}
        outputs = {slot: names for slot, names in outputs.items() if any(names)}
        if not outputs:
            return
        attrs = {**_forward_attrs(op), FORWARD: self._shapes(op)}
        made = self.block.append_op(op.type + "_grad", inputs, outputs, attrs)
        made.site = op.site
        for slot, names in op.inputs.items():
            for name, grad in zip(names, outputs.get(slot + GRAD, ())):
                if grad:
                    self.add(name, grad, made)

    def _values(self, op, slot):
        """The names of the values that an op found, or put, in a slot."""
        after = slot not in op.inputs
        return [self.copies.name(op, self.renamed.get(name, name), after)
                for name in (op.outputs if after else op.inputs).get(slot, ())]

    def _shapes(self, op):
        """The forward variables by slot; in a body, whose turns may differ in shape, those of the same turn."""
        if self.forward is self.block:
            return {**op.inputs, **op.outputs}
        return {slot: self._values(op, slot) for slot in (*op.inputs, *op.outputs)}

    def _warn_of_changed(self, op, inputs):
        """Say which values the gradient of an op will not find as the op found them (as in the original)."""
        for slot, names in inputs.items():
            for name in names:
                writer = self.writers.get(name, op)
                if id(writer) not in self.positions:
                    continue
                is_later = self.positions[id(writer)] > self.positions[id(op)]
                if is_later or slot in op.inputs and name in op.output_arg_names:
                    notices.once(("changed", op.where(), name), f"{op}: its gradient reads {name!r} after {writer} "
                                 f"changed it, so it may be wrong: let that one write another variable")

    def contribution(self, name):
        """A new name for one contribution to a variable's gradient; empty where none is wanted."""
        if not name or name not in self.wanted or not is_float(self.block._var_recursive(name)._dtype):
            return ""
        number = self.counts.get(name, len(self.found.get(name, ())))
        self.counts[name] = number + 1
        return self.grad_name(name) if number == 0 else f"{self.grad_name(name)}@RENAME@{number}"

    def grad_name(self, name):
        """The name of a variable's gradient; in a body, of what one turn gives."""
        return grad_name(name) if self._is_array(name) else grad_name(name) + self.suffix

    def add(self, name, grad, op=None):
        """Note a contribution to a variable's gradient."""
        self.found.setdefault(name, []).append((grad, op))

    def gradient(self, name):
        """The name of a variable's whole gradient, summing contributions first; None where none flows."""
        parts = self.found.get(name)
        if not parts:
            return None
        if len(parts) > 1:
            first, maker = parts[0]
            if first == self.grad_name(name) and maker is not None:
                first = self._rename_first(name, maker)
            names = [first] + [grad for grad, _ in parts[1:]]
            self.block.append_op("sum", {"X": names}, {"Out": [self.grad_name(name)]})
            self.found[name] = [(self.grad_name(name), self.block.ops[-1])]
        self._clip_error(name)
        return self.found[name][0][0]

    def _rename_first(self, name, maker):
        """Free the plain gradient name for the sum, so that every variable is written once."""
        old, new = self.grad_name(name), self.grad_name(name) + "@RENAME@0"
        self.block.create_var(name=new, **self.block.var(old).fields())
        maker._rename_output(old, new)
        return new

    def _clip_error(self, name):
        clip = getattr(self.block.find_var(name), "error_clip", None)
        if clip is not None and name not in self.clipped:
            self.clipped.add(name)
            clip._append_clip_op(self.block, self.found[name][0][0])

    def _segments(self, path, checkpoints):
        """The path cut behind each op that makes a checkpoint, last segment first."""
        names = {one if isinstance(one, str) else one.name for one in (checkpoints or ())}
        segments = [[]]
        for op in path:
            segments[-1].append(op)
            if names.intersection(op.output_arg_names):
                segments.append([])
        return [segment for segment in reversed(segments) if segment]

    def _recompute(self, segment, checkpoints):
        """Repeat a segment's forward ops under new names, for the grad ops to read."""
        kept = {one if isinstance(one, str) else one.name for one in checkpoints}
        for op in segment:
            if all(name in kept for name in op.output_arg_names) or "sub_block" in op.attrs:
                continue  # a body writes the variables it names: it is not run a second time
            inputs = {slot: [self.renamed.get(name, name) for name in names] for slot, names in op.inputs.items()}
            outputs = {slot: [self._twin(name) for name in names] for slot, names in op.outputs.items()}
            # Read from where they are: checkpoints, and what lasts beyond the step, as a batch norm's averages.
            self.renamed.update((name, _twin_name(name)) for name in op.output_arg_names
                                if name not in kept and not self.block._var_recursive(name).persistable)
            attrs = {**_forward_attrs(op), "random_name": op.output_arg_names[0]}
            self.block.append_op(op.type, inputs, outputs, attrs)

    def _twin(self, name):
        """The name of the variable that takes the recomputed value; it is made here."""
        fields = self.block._var_recursive(name).fields()
        return self.block.create_var(name=_twin_name(name), **{**fields, "persistable": False}).name


def _twin_name(name):
    return name + "@RECOMPUTED"


def _rewritten(ops):
    """The variables that several ops write, or that an op both reads and writes."""
    writes = Counter(name for op in ops for name in op.output_arg_names)
    writes.update(name for op in ops for name in set(op.output_arg_names).intersection(op.input_arg_names))
    return {name for name, count in writes.items() if count > 1}


def _forward_attrs(op):
    return {name: value for name, value in op.attrs.items() if name not in ("op_role", "op_role_var")}


def _reads(op):
    return set(op.input_arg_names) | outside_names(op.block.program, op)


def _parameters(program, parameter_list):
    block = program.global_block()
    if parameter_list is None:
        return [param for param in program.all_parameters() if param.trainable]
    found = [one if isinstance(one, Variable) else block.var(one) for one in parameter_list]
    return [param for param in found if not isinstance(param, Parameter) or param.trainable]
