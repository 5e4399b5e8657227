"""Optimizers that wrap another one: recomputing the forward pass, merging gradients of several steps, looking ahead.

The averages of parameters (``averages``) can be had from here too; loss scaling is in ``program/build/amp``.
"""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.graph.unique_name import name_scope
from fleet_mpi.program.layers.control_flow import ConditionalBlock
from fleet_mpi.program.optimizers.averages import ExponentialMovingAverage, ModelAverage  # noqa: F401
from fleet_mpi.program.optimizers.base import persistable, programs_of


class Wrapper:
    """Base: everything not said here is the wrapped optimizer's."""

    def __init__(self, inner):
        self.inner_optimizer = inner

    def __getattr__(self, name):
        if name == "inner_optimizer":  # not set yet: do not ask oneself for ever
            raise AttributeError(name)
        return getattr(self.inner_optimizer, name)

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, grad_clip=None):
        """Add backward and update ops; returns (update ops, [(parameter, gradient)])."""
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        with self.clipping(grad_clip):
            return self.apply_optimize(loss, startup_program, pairs), pairs

    def backward(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None):
        """Add the backward ops only; returns [(parameter, gradient)]."""
        return self.inner_optimizer.backward(loss, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_optimize(self, loss, startup_program, params_grads):
        """Add the update ops for these pairs to the loss's program; returns them."""
        with programs_of(loss, startup_program):
            return self.apply_gradients(params_grads)

    def apply_gradients(self, params_grads):
        """Add the update ops for these pairs to the default programs; returns them."""
        return self.inner_optimizer.apply_gradients(params_grads)


class RecomputeOptimizer(Wrapper):
    """Keeps only the checkpoints from the forward pass, and computes what lies between a second time."""

    def __init__(self, optimizer):
        super().__init__(optimizer)
        self._checkpoints = None

    def _set_checkpoints(self, checkpoints):
        """The variables (or their names) to keep."""
        if not isinstance(checkpoints, (list, tuple)):
            raise UsageError(f"RecomputeOptimizer: expected a list of variables, got {type(checkpoints).__name__}")
        self._checkpoints = list(checkpoints)

    def backward(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None):
        """Add the backward ops with the repeated forward ones; returns [(parameter, gradient)]."""
        if self._checkpoints is None:
            raise UsageError("RecomputeOptimizer: call _set_checkpoints([...]) with the variables to keep first")
        wanted = parameter_list if parameter_list is not None else self.inner_optimizer._parameter_list
        with programs_of(loss, startup_program):
            return append_backward(loss, wanted, no_grad_set, callbacks, self._checkpoints)


class GradientMergeOptimizer(Wrapper):
    """Adds up the gradients of ``k_steps`` runs and updates with the sum, or with the mean (``avg``), at the last.

    Row gradients cannot be added up in a fixed place and are refused, as in the original.
    """

    def __init__(self, inner_optimizer, k_steps=1, avg=True):
        if not isinstance(k_steps, int) or k_steps < 1:
            raise UsageError(f"GradientMergeOptimizer: k_steps must be an integer from 1 up, got {k_steps!r}")
        super().__init__(inner_optimizer)
        self.k_steps, self.avg = k_steps, avg

    def _set_k_steps(self, k_steps):
        self.k_steps = k_steps

    def _set_avg(self, avg):
        self.avg = avg

    def skip_when(self, flag):
        """Nothing: a bad step's gradients were set to zero, but the sum of the other steps shall be applied."""

    def apply_gradients(self, params_grads):
        """Add the sums, the condition and the update under it; returns the conditional op."""
        if self.k_steps == 1:
            return self.inner_optimizer.apply_gradients(params_grads)
        program = default_main_program()
        sums = [(param, append_sum(program, param, grad)) for param, grad in params_grads]
        condition = append_every(program, "gradient_merge_step", self.k_steps)
        with program._optimized_guard([]), ConditionalBlock([condition], is_scalar_condition=True).block():
            body = program.current_block()
            self.inner_optimizer.apply_gradients([(param, self._mean(body, param, one)) for param, one in sums])
            for _, one in sums:
                body.append_op("fill_constant", outputs={"Out": [one]},
                               attrs={"shape": list(one.shape), "value": 0.0, "dtype": one.dtype.value})
        return program.current_block().ops[-1:]

    def _mean(self, body, param, total):
        mean = body.create_var(name=total.name + "@MEAN", shape=total.shape, dtype=total.dtype, stop_gradient=True)
        with body.program._optimized_guard([param, total]):
            body.append_op("scale", {"X": [total]}, {"Out": [mean]},
                           {"scale": 1.0 / self.k_steps if self.avg else 1.0})
        return mean


def append_sum(program, param, grad):
    """Add the gradient to a variable kept from run to run; returns that."""
    if grad.type == VarType.SELECTED_ROWS:
        raise UsageError(f"GradientMergeOptimizer: {param.name!r} has a row gradient (is_sparse=True), which cannot be "
                         f"merged over steps: make its embedding dense")
    total = persistable(f"{grad.name}@GradientMerge", param.shape, param.dtype, 0.0)
    with program._optimized_guard([param, grad]), name_scope("gradient_merge"):
        program.current_block().append_op("elementwise_add", {"X": [total], "Y": [grad]}, {"Out": [total]})
    return total


def append_every(program, name, count):
    """Add a counter of runs; returns a variable that is true at every ``count``-th."""
    block = program.current_block()
    with program._optimized_guard([]), name_scope("gradient_merge"):
        step = persistable(unique_name.generate(name), [1], "int32", 0)
        limit = persistable(unique_name.generate(name + "_limit"), [1], "int32", count)
        zero = persistable(unique_name.generate(name + "_zero"), [1], "int32", 0)
        condition = block.create_var(name=unique_name.generate(name + "_is_last"), shape=[1], dtype="bool",
                                     stop_gradient=True)
        block.append_op("increment", {"X": [step]}, {"Out": [step]}, {"step": 1.0})
        block.append_op("elementwise_mod", {"X": [step], "Y": [limit]}, {"Out": [step]})
        block.append_op("equal", {"X": [step], "Y": [zero]}, {"Out": [condition]})
    return condition


class LookaheadOptimizer(Wrapper):
    """Every ``k`` steps the parameters go back to a slow copy, which moves by ``alpha`` towards them first."""

    def __init__(self, inner_optimizer, alpha=0.5, k=5):
        if not 0.0 <= alpha <= 1.0 or not isinstance(k, int) or k < 1:
            raise UsageError(f"LookaheadOptimizer: alpha must be from 0 to 1 and k an integer from 1 up, got "
                             f"alpha={alpha!r}, k={k!r}")
        super().__init__(inner_optimizer)
        self.alpha, self.k = alpha, k

    def apply_gradients(self, params_grads):
        """Add the update ops and the step back; returns the update ops."""
        ops = self.inner_optimizer.apply_gradients(params_grads)
        program = default_main_program()
        condition = append_every(program, "lookahead_step", self.k)
        with program._optimized_guard([]), ConditionalBlock([condition], is_scalar_condition=True).block():
            for param, _ in params_grads:
                self._append_step_back(program.current_block(), param)
        return ops

    def _append_step_back(self, block, param):
        slow = slow_copy(param)
        parts = []
        for var, share in ((param, self.alpha), (slow, 1.0 - self.alpha)):
            part = block.create_var(name=f"{var.name}@SHARE", shape=param.shape, dtype=param.dtype,
                                    stop_gradient=True)
            block.append_op("scale", {"X": [var]}, {"Out": [part]}, {"scale": share})
            parts.append(part)
        block.append_op("sum", {"X": parts}, {"Out": [slow]})
        block.append_op("assign", {"X": [slow]}, {"Out": [param]})


def slow_copy(param):
    """The variable ``<param>@SLOW``, which the startup program fills with the parameter's first values."""
    fields = dict(name=param.name + "@SLOW", shape=param.shape, dtype=param.dtype, persistable=True)
    startup = default_startup_program().global_block()
    startup.create_var(**fields)
    if startup.has_var(param.name):
        startup.append_op("assign", {"X": [param.name]}, {"Out": [fields["name"]]})
    return default_main_program().global_block().create_var(stop_gradient=True, **fields)
