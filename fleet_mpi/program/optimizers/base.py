"""Optimizer: from a loss to the ops that update its parameters.

``minimize`` adds the backward ops, then for all (parameter, gradient) pairs, sorted by parameter name:
clipping, regularisation, one update op each. All these ops carry the role Optimize and, as
``op_role_var``, the parameter and the gradient as backward gave it. The arithmetic is in
``update_rules``; a subclass says which op, which states and which attributes.
"""

from contextlib import contextmanager

import numpy as np

from fleet_mpi.errors import NotBuilt, UsageError, nearest
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.build.clip import GradientClip, append_gradient_clip_ops
from fleet_mpi.program.build.initializers import Constant, NumpyArray
from fleet_mpi.program.build.regularizers import append_regularization_ops
from fleet_mpi.program.graph import program as programs, unique_name
from fleet_mpi.program.graph.unique_name import name_scope
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.ops.optimize import attributes, out_slot, tensor_slot, variable_settings
from fleet_mpi.program.optimizers.learning_rate import LearningRate
from fleet_mpi.program.optimizers.state import restore, state_of
from fleet_mpi.update_rules import BETA_POWERS, RULES


class Optimizer:
    """Base of all: a subclass names its update rule (an entry of ``update_rules.RULES``) in ``type``."""

    type = None
    powers_apart = False  # 1.x: not the update op but a scale op after all updates moves a beta power on

    def __init__(self, learning_rate, parameter_list=None, regularization=None, grad_clip=None, name=None, **hypers):
        self.learning_rate = LearningRate(learning_rate, type(self).__name__)
        self.hypers = checked_hypers(type(self), hypers)
        self._parameter_list = list(parameter_list) if parameter_list is not None else None
        self.regularization = regularization
        if grad_clip is not None and not isinstance(grad_clip, GradientClip):
            raise UsageError(f"{type(self).__name__}: grad_clip must be a GradientClipByValue, ByNorm or ByGlobalNorm, "
                             f"got {type(grad_clip).__name__}")
        self._grad_clip = grad_clip
        self._name = name
        self._accumulators = {}
        self._first_values = {}  # of accumulators that are still to be made, from a saved state
        self._opti_name_list = []
        self._rate_dtype = "float32"
        self._skip_update = None

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, grad_clip=None):
        """Add backward and update ops to the loss's program; returns (update ops, [(parameter, gradient)])."""
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        with self.clipping(grad_clip):
            return self.apply_optimize(loss, startup_program, pairs), pairs

    @contextmanager
    def clipping(self, grad_clip):
        """Within the block this clip, if any, is used instead of the optimizer's own."""
        own = self._grad_clip
        self._grad_clip = grad_clip if grad_clip is not None else own
        try:
            yield
        finally:
            self._grad_clip = own

    def backward(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None):
        """Add the backward ops only; returns [(parameter, gradient)]."""
        wanted = parameter_list if parameter_list is not None else self._parameter_list
        with programs_of(loss, startup_program):
            return append_backward(loss, wanted, no_grad_set, callbacks)

    def apply_optimize(self, loss, startup_program, params_grads):
        """Add the update ops for these pairs to the loss's program; returns them."""
        with programs_of(loss, startup_program):
            return self.apply_gradients(params_grads)

    def apply_gradients(self, params_grads):
        """Clip, regularise and update with these pairs, in the default programs; returns the update ops."""
        pairs = sorted(params_grads, key=lambda pair: pair[0].name)
        if not pairs:
            raise UsageError(f"{type(self).__name__}: no parameter gets a gradient: does the loss depend on a "
                             f"trainable parameter (stop_gradient, trainable, parameter_list)?")
        given = [grad for _, grad in pairs]
        if self._grad_clip is not None:
            pairs = self._grad_clip(pairs)
        else:
            pairs = append_gradient_clip_ops(pairs)
        source_of = {new.name: old.name for (_, new), old in zip(pairs, given) if old is not None}
        pairs = self._regularize(pairs, source_of)
        sources = [(param, old) for (param, _), old in zip(pairs, given)]
        return self._create_optimization_pass(pairs, sources)

    def _regularize(self, pairs, source_of):
        return append_regularization_ops(pairs, self.regularization, source_of)

    def _create_optimization_pass(self, parameters_and_grads, marked_as=None):
        """Add states, learning rate and one update op per pair; ``marked_as`` are the pairs for op_role_var."""
        program = programs.default_main_program()
        block = program.current_block()
        start = len(block.ops)
        pairs = [(param, grad) for param, grad in parameters_and_grads if grad is not None and param.trainable]
        marks = {param.name: mark for param, mark in marked_as or pairs}
        self._rate_dtype = "float64" if any(param.dtype == "float64" for param, _ in pairs) else "float32"
        self._create_global_learning_rate()
        self._create_accumulators(block, [param for param, _ in pairs])
        for param, grad in pairs:
            with program._optimized_guard([param, marks[param.name]]), name_scope("optimizer"):
                self._append_optimize_op(block, (param, grad))
        for param, _ in pairs:
            with program._optimized_guard([param, marks[param.name]]), name_scope("optimizer"):
                self._move_powers(block, param)
        self._finish_update(block, pairs)
        program.touch()
        return block.ops[start:]

    def _append_optimize_op(self, block, param_and_grad):
        """Add the update op of one pair."""
        param, grad = param_and_grad
        inputs = {"Param": [param], "Grad": [grad],
                  "LearningRate": [self._create_param_lr(param_and_grad)]}
        outputs = {"ParamOut": [param]}
        for state in self._states_of(param):
            held = self._get_accumulator(state.name, param)
            inputs[state.slot] = [held]
            if not self._is_apart(state):
                outputs[out_slot(state.slot)] = [held]
        inputs.update(self.op_inputs(param))
        return block.append_op(self._rule_of(param).name, inputs, outputs, self.op_attrs(param))

    def _is_apart(self, state):
        """Whether an op of its own moves a state on; an update that may be skipped, or by variables, does all
        itself."""
        return (self.powers_apart and state in BETA_POWERS and self._skip_update is None
                and not isinstance(self.hypers[state.initial], Variable))

    def _move_powers(self, block, param):
        for state in self._states_of(param):
            if self._is_apart(state):
                held = self._get_accumulator(state.name, param)
                block.append_op("scale", {"X": [held]}, {"Out": [held]}, {"scale": float(self.hypers[state.initial])})

    def _rule_of(self, param):
        return RULES[self.type]

    def _states_of(self, param):
        return self._rule_of(param).states

    def op_inputs(self, param):
        """Further inputs of the update op: settings that are variables, and the flag that skips it, if any."""
        given = {tensor_slot(name): [value] for name, value in self.hypers.items() if isinstance(value, Variable)}
        return given if self._skip_update is None else {**given, "SkipUpdate": [self._skip_update]}

    def op_attrs(self, param):
        """The attributes of a parameter's update op."""
        rule = self._rule_of(param)
        return attributes(rule, {name: value for name, value in self.hypers.items()
                                 if name in rule.hypers and not isinstance(value, Variable)})

    def skip_when(self, flag):
        """Let update ops made from now on do nothing in a run where this variable ([1], bool) is true; None ends it."""
        self._skip_update = flag

    def _finish_update(self, block, parameters_and_grads):
        """For subclasses: ops after all updates."""

    def _create_accumulators(self, block, parameters):
        for param in parameters:
            for state in self._states_of(param):
                fill = self.hypers[state.initial] if isinstance(state.initial, str) else state.initial
                if isinstance(fill, Variable):
                    fill = self._rule_of(param).hypers[state.initial]
                self._add_accumulator(state.name, param, state.dtype, fill, None if state.like_param else [1])

    def _add_accumulator(self, name, param, dtype=None, fill_value=0.0, shape=None):
        """The persistable variable ``<param>_<name>_0`` with its initialiser; the existing one of this program."""
        held = self._accumulators.setdefault(name, {})
        if param.name in held and held[param.name].block.program is programs.default_main_program():
            return held[param.name]
        kind = f"{self._name}_{name}" if self._name else name
        own = unique_name.generate(f"{param.name}_{kind}")
        made = persistable(own, shape or param.shape, dtype or param.dtype, self._first_values.get(own, fill_value))
        held[param.name] = made
        self._opti_name_list.append(made.name)
        return made

    def _get_accumulator(self, name, param):
        if param.name not in self._accumulators.get(name, ()):
            raise UsageError(f"{type(self).__name__} keeps no {name!r} for {param.name!r}; "
                             + nearest(name, self._accumulators))
        return self._accumulators[name][param.name]

    def get_opti_var_name_list(self):
        """The names of all states."""
        return list(self._opti_name_list)

    @property
    def _learning_rate(self):
        """What was given: a number, a variable or a scheduler; scripts of both versions read it."""
        return self.learning_rate.given

    def _create_global_learning_rate(self):
        return self.learning_rate.create(programs.default_main_program(), self._rate_dtype)

    def _global_learning_rate(self, program=None):
        """The learning-rate variable of a program (the default one), or None before it is made."""
        return self.learning_rate.variable(program or programs.default_main_program())

    def _create_param_lr(self, param_and_grad):
        factor = param_and_grad[0].optimize_attr.get("learning_rate", 1.0)
        if isinstance(factor, Variable):
            return factor
        return self.learning_rate.times(programs.default_main_program(), float(factor), self._rate_dtype)

    def get_lr(self):
        """The learning rate as it stands in the global scope, or the one given where nothing ran yet."""
        return self.learning_rate.value()

    current_step_lr = get_lr

    def set_lr(self, value):
        """Learn with another rate from now on; not where a schedule decides."""
        self.learning_rate.change(value)

    def state_dict(self):
        """{name: tensor} of the states, as they stand in the global scope, and the scheduler's (``LR_Scheduler``)."""
        return state_of(self)

    def set_state_dict(self, state_dict):
        """Go on from where ``state_dict()`` was taken; before ``minimize``, these will be the first values."""
        restore(self, state_dict)

    set_dict = set_state_dict

    def step(self):
        """Refuse: there are no eager gradients here."""
        refuse_eager(self, "step")

    def clear_grad(self):
        """Refuse: there are no eager gradients here."""
        refuse_eager(self, "clear_grad")

    clear_gradients = clear_grad


def checked_hypers(owner, hypers):
    """The settings of an optimizer; a variable is taken where the update op reads one."""
    known = variable_settings(RULES[owner.type]) if owner.type in RULES else ()
    for name, value in hypers.items():
        if isinstance(value, Variable) and name not in known:
            raise UsageError(f"{owner.__name__}: {name} must be given as Python values, got the variable "
                             f"{value.name!r}")
    return hypers


def persistable(name, shape, dtype, value):
    """A persistable variable of the main program, filled with a number or an array by the startup program."""
    main = programs.default_main_program().global_block()
    startup = programs.default_startup_program().global_block()
    made = main.create_var(name=name, shape=shape, dtype=dtype, persistable=True, stop_gradient=True)
    twin = startup.create_var(name=name, shape=shape, dtype=dtype, persistable=True)
    (NumpyArray if isinstance(value, np.ndarray) else Constant)(value)(twin, startup)
    return made


@contextmanager
def programs_of(loss, startup_program):
    """Within the block layers write into the loss's program, and into the startup program given, if any."""
    if not isinstance(loss, Variable):
        raise UsageError(f"minimize: expected the loss variable, got {type(loss).__name__} {loss!r}")
    with programs.program_guard(loss.block.program, startup_program):
        yield


def refuse_eager(optimizer, method):
    """Say that static programs train by ``minimize``."""
    raise NotBuilt(f"{type(optimizer).__name__}.{method}: there is no eager mode; a static program trains with "
                   f"optimizer.minimize(loss), built once, then exe.run(program, feed=...) for every step")
