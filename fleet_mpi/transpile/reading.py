"""From a training program to a Distribution: which variables are updated, how, and at which learning rate.

Update ops are found by their role; what leads from a gradient as backward gave it to the update is read back,
op by op, into the steps of a Recipe. An op that is not known there is refused: a part of a variable might not
be enough for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.parameter_server.recipes import Bound, BoundNorm, Decay, Recipe
from fleet_mpi.program.graph.attachment import Attachment
from fleet_mpi.program.graph.program import copy_program, outside_names, writes_to_outside
from fleet_mpi.program.graph.types import Role, VarType
from fleet_mpi.program.graph.variable import Parameter
from fleet_mpi.program.ops.optimize import ATTRIBUTE_OF, tensor_slot
from fleet_mpi.update_rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from fleet_mpi.program.graph.operator import Operator
    from fleet_mpi.program.graph.program import Program


class Updates:
    """What is read from a program: recipes by variable in op order, and the ops that servers take over."""

    def __init__(self, program: Program, startup: Program | None = None) -> None:
        self.block = program.global_block()
        self.program, self.startup = program, startup
        self.recipes, self.gradients, self.moved = {}, {}, set()
        self.update_ops, self._by_param = {}, None
        self._optimize = [op for op in self.block.ops if op.role & (Role.Optimize | Role.LRSched)]
        self._maker = {name: op for op in self._optimize for name in op.output_arg_names
                       if name not in op.input_arg_names}
        # In 1.x, ops of their own move the beta powers on.
        self._powers = {op.input("X")[0]: op for op in self._optimize
                        if op.type == "scale" and op.input("X") == op.output("Out")}
        self._refuse_inner_updates(program)
        for op in self._optimize:
            if op.type in RULES and op.role & Role.Optimize:
                self._read_update(op)
        if not self.recipes and program._is_distributed:
            raise UsageError("this program was transpiled before, its updates are the servers'; transpile the program "
                             "that minimize made")
        self._refuse_what_stays()

    @staticmethod
    def _refuse_inner_updates(program):
        for block in program.blocks[1:]:
            for op in block.ops:
                if op.type in RULES and op.input("Param"):
                    raise NotBuilt(f"{op}: an update under a condition (gradient merge) is not built with servers")

    def _refuse_what_stays(self):
        """Other ops of an optimizer stay with the workers: they may look at parameters, not at what servers have."""
        kept = {*self.recipes, *(name for recipe in self.recipes.values() for _, name in recipe.states)}
        gone = {name for op in self.moved for name in op.output_arg_names} | kept
        for op in self._optimize:
            if op in self.moved or op.role & Role.LRSched:
                continue
            reads, writes = reads_and_writes(self.program, op)
            wrong = sorted(kept & writes | (gone - set(self.recipes)) & reads)
            if wrong:
                raise NotBuilt(f"{op}: servers update {wrong[0]!r}, they know clipping, L1 and L2 decay and the "
                               f"optimizers; what else an optimizer does with it is not built with servers")

    def _read_update(self, op):
        param = op.input("Param")[0]
        if param in self.recipes:
            raise NotBuilt(f"{op}: the parameter {param!r} is updated twice; servers apply one update each")
        if op.input("SkipUpdate"):
            raise NotBuilt(f"{op}: updates that may be skipped (loss scaling) are not built with servers")
        rule = RULES[op.type]
        if rule.name == "dgc_momentum":
            raise NotBuilt(f"{op}: deep gradient compression is for collective training; use Momentum with servers")
        self.moved.add(op)
        source = (op.attrs.get("op_role_var") or [None, op.input("Grad")[0]])[1]
        if source in self._maker:
            raise NotBuilt(f"{self._maker[source]}: servers do not know this step of the update of {param!r}: they "
                           f"know clipping, L1 and L2 decay, and the optimizers")
        steps = self._steps(op.input("Grad")[0], source, param)
        names = ATTRIBUTE_OF.get(rule.name, {})
        hypers = {name: op.attrs[names.get(name, name)] for name in rule.hypers if names.get(name, name) in op.attrs}
        hypers.update(self._constant_settings(op, rule))
        states = tuple((state.name, op.input(state.slot)[0]) for state in rule.states)
        self.moved.update(self._powers[name] for _, name in states if name in self._powers)
        self.recipes[param] = Recipe(rule.name, tuple(sorted((name, _plain(value)) for name, value in hypers.items())),
                                     op.input("LearningRate")[0], tuple(steps), states)
        self.gradients[param], self.update_ops[param] = source, op

    def _constant_settings(self, op, rule):
        """{setting: value} of those that are variables; they must keep their first value."""
        found = {name: constant_value(self.program, self.startup, variable)
                 for name in rule.hypers for variable in op.input(tensor_slot(name))}
        changing = sorted(name for name, value in found.items() if value is None)
        if changing:
            raise NotBuilt(f"{op}: {changing[0]} is a variable that does not keep one value (of fill_constant or "
                           f"create_global_var); settings of an optimizer that are variables are not built with "
                           f"servers; give numbers")
        return found

    def _steps(self, grad, source, param):
        steps = []
        while grad != source:
            op = self._maker.get(grad)
            if op is None:
                raise NotBuilt(f"the update of {param!r} reads {grad!r}, which does not come from its gradient "
                               f"{source!r} by clipping and regularisation")
            self.moved.add(op)
            step, grad = self._step(op, param)
            if step is not None:
                steps.insert(0, step)
        return steps

    def _step(self, op, param):
        """(the step an op stands for, the gradient it reads)."""
        if op.type == "sum" and len(op.input("X")) == 2:
            return self._decay(op, param)
        grad = op.input("X")[0] if op.input("X") else ""
        if op.type in ("clip", "clip_rows"):
            return Bound(float(op.attrs["min"]), float(op.attrs["max"])), grad
        if op.type == "clip_by_norm":
            return BoundNorm(float(op.attrs["max_norm"])), grad
        if op.type == "merge_selected_rows":
            return None, grad
        if op.type == "multiply_by_scale":
            return self._global_norm(op), grad
        raise NotBuilt(f"{op}: servers do not know this step of the update of {param!r}: they know clipping, L1 and "
                       f"L2 decay, and the optimizers")

    def _decay(self, op, param):
        grad, decay = op.input("X")
        scale = self._maker.get(decay)
        source = scale.input("X")[0] if scale is not None and scale.type == "scale" else None
        sign = self._maker.get(source)
        of_sign = sign is not None and sign.type == "sign" and sign.input("X") == [param]
        if source != param and not of_sign:
            raise NotBuilt(f"{op}: servers know L1 and L2 decay only; this adds {decay!r} to the gradient of {param!r}")
        self.moved.update([scale, sign] if of_sign else [scale])
        return Decay(float(scale.attrs["scale"]), of_sign), grad

    def _global_norm(self, op):
        factor = op.input("Scale")[0]
        scale = self._maker[factor]
        if scale not in self.moved:
            total = self._maker[scale.input("X")[0]]
            squares = [self._maker[name] for name in total.input("X")]
            merges = [self._maker[one.input("X")[0]] for one in squares if one.input("X")[0] in self._maker]
            self.moved.update([scale, total, *squares, *merges])
        return BoundNorm(float(scale.attrs["clip_norm"]), factor)

    def ops_of(self, param: str) -> list[Operator]:
        """The ops that servers take over for one parameter, in order."""
        if self._by_param is None:
            self._by_param = {}
            for op in self._optimize:
                if op in self.moved and not op.role & Role.LRSched:
                    self._by_param.setdefault((op.attrs.get("op_role_var") or [None])[0], []).append(op)
        return self._by_param[param]

    def is_by_rows(self, param: str) -> bool:
        """Whether a parameter's gradient comes as rows."""
        grad = self.block.find_var(self.gradients[param])
        return grad is not None and grad.type == VarType.SELECTED_ROWS

    def rates(self) -> tuple[Any, dict[str, str], Program | None]:
        """(rates that workers set, {rate: dtype}, the program for the others or None): see ``Schedule``."""
        wanted = sorted({recipe.rate for recipe in self.recipes.values()})
        schedule = Schedule(self.program, wanted)
        self.moved.update(op for op in schedule.ops if op.role & Role.LRSched)
        program = only_these(self.program, schedule.ops) if schedule.ops else None
        return tuple(schedule.fed), schedule.dtypes, program


class Schedule:
    """How learning rates come about: ``ops`` are what servers run, ``fed`` what workers tell them, one number each.

    Servers take over the ops with the role of a schedule, and run, as workers go on doing, the other ops that lead
    from counters and constants to a rate: so steps are counted over all workers in every mode. What depends on data
    is computed by workers.
    """

    def __init__(self, program: Program, rates: Iterable[str]) -> None:
        self.program, self.block = program, program.global_block()
        self._writers, self._pure = {}, {}
        for op in self.block.ops:
            for name in reads_and_writes(program, op)[1]:
                self._writers.setdefault(name, []).append(op)
        chosen = {op for op in self.block.ops if op.role & Role.LRSched}
        self._add_leading(chosen, [*rates, *self._reads(chosen)])
        self.ops = [op for op in self.block.ops if op in chosen]
        made = {name for op in self.ops for name in reads_and_writes(program, op)[1]}
        self.fed = sorted(name for name in {*rates, *self._reads(chosen)} - made if self._is_told(name))
        self.dtypes = {name: np.dtype(self.block._var_recursive(name)._dtype) for name in {*rates, *self.fed}}

    def _reads(self, ops):
        return {name for op in ops for name in reads_and_writes(self.program, op)[0]}

    def _add_leading(self, chosen, names):
        """Add the ops, as far as they need no data, that these names come from."""
        for name in names:
            for op in self._writers.get(name, ()):
                if op not in chosen and self._needs_no_data(op):
                    chosen.add(op)
                    self._add_leading(chosen, self._reads([op]))

    def _needs_no_data(self, op):
        if op not in self._pure:
            self._pure[op] = not op.trains  # while it is asked about: a counter reads itself
            self._pure[op] = not op.trains and all(self._is_constant(name) for name in self._reads([op]))
        return self._pure[op]

    def _is_constant(self, name):
        """Whether a value follows from the number of steps alone."""
        var, writers = self.block._var_recursive(name), self._writers.get(name, ())
        if var.is_data or isinstance(var, Parameter):
            return False
        return bool(writers or var.persistable) and all(
            op.role & Role.LRSched or self._needs_no_data(op) for op in writers)

    def _is_told(self, name):
        """Whether workers tell servers a value; a table that nobody changes is in the servers' startup program."""
        var = self.block._var_recursive(name)
        if int(np.prod(var.shape, dtype=np.int64)) == 1:
            return True
        if var.persistable and name not in self._writers:
            return False
        raise NotBuilt(f"the learning rate depends on {name!r} of shape {list(var.shape)}, which workers compute: they "
                       f"can send single numbers to servers only; compute the rate itself before minimize")


def constant_value(program: Program, startup: Program | None, name: str) -> float | None:
    """The number that a variable keeps in every step, in its element type; None where it is not known to keep one."""
    var, makers = program.global_block()._var_recursive(name), _writers(program, name)
    if not makers and var.persistable and startup is not None:
        makers = _writers(startup, name)
    if [op.type for op in makers] != ["fill_constant"] or makers[0].input_arg_names or makers[0].block.idx:
        return None
    return float(np.asarray(makers[0].attrs["value"], np.dtype(var._dtype)))


def _writers(program, name):
    return [op for block in program.blocks for op in block.ops if name in op.output_arg_names]


def only_these(program: Program, ops: Sequence[Operator]) -> Program:
    """A copy of a program with some ops of its block 0 and their variables."""
    keep = set(ops)
    positions = [position for position, op in enumerate(program.global_block().ops) if op in keep]
    twin = copy_program(program)
    block = twin.global_block()
    block.ops = [block.ops[position] for position in positions]
    used = {name for op in block.ops for names in reads_and_writes(twin, op) for name in names}
    block.vars = {name: var for name, var in block.vars.items() if name in used}
    twin._before_run, twin._loaders, twin.attachment = [], [], Attachment()
    twin.touch()
    return twin


def reads_and_writes(program: Program, op: Operator) -> tuple[set[str], set[str]]:
    """(names an op reads, names it writes), those of the body of control flow among them."""
    if "sub_block" not in op.attrs:
        return set(op.input_arg_names), set(op.output_arg_names)
    inside = writes_to_outside(program.blocks[op.attrs["sub_block"]])
    return {*op.input_arg_names, *outside_names(program, op)}, {*op.output_arg_names, *inside}


def _plain(value):
    """Attributes as values that compare and print equal in every process."""
    return tuple(value) if isinstance(value, list) else value
