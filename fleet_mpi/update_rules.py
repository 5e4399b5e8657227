"""The optimizers, in place on plain arrays: used by the optimizer ops and by the parameter servers alike.

Every rule is called ``rule(param, grad, learning_rate, *states, **hypers)``. ``grad`` is an array of the
parameter's shape or ``Rows``; rows are merged by id first. Learning rate and beta powers are arrays of
shape [1], which may live on a device. Formulas and defaults are the original's. ``RULES`` describes each
rule, so that ops and tables can be made from it. Knows no graph and no MPI.

Rules are element by element, so slices of a variable give the bits of the whole. LARS and LAMB also need
norms of whole variables: ``square_nodes`` of the slices, joined by ``join_squares``, give the same bits
for any cut.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT, Array, Rows, module_of, to_host
from fleet_mpi.errors import ProgramError, UsageError, nearest
from fleet_mpi.kernels.reference import random, row_squares, rows as row_kernels, update

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Of a parameter's shape, or some rows of it.
Gradient = Array | Rows
Hypers = Mapping[str, Any]

DGC_SMALLEST = 16384  # elements: the original compresses nothing below

square_sum = update.square_sum
square_nodes = update.square_nodes
square_sum_rows = row_squares.square_sum_rows
square_nodes_rows = row_squares.square_nodes_rows


def sgd(param: Array, grad: Gradient, learning_rate: Array) -> None:
    """p -= lr g. Rows not mentioned stay."""
    if isinstance(grad, Rows):
        update.sgd_rows(*_table_and_rows(param, grad), learning_rate)
    else:
        update.sgd(*_lines(param, grad), learning_rate)


def momentum(param: Array, grad: Gradient, learning_rate: Array, velocity: Array, mu: float = 0.9,
             use_nesterov: bool = False, regularization_coeff: float = 0.0, rescale_grad: float = 1.0) -> None:
    """v = mu v + g; p -= lr v, or lr (g + mu v) with Nesterov; g = rescale_grad grad + regularization_coeff p.

    Rows not mentioned go on along their velocity.
    """
    hypers = (mu, use_nesterov, regularization_coeff, rescale_grad)
    if isinstance(grad, Rows):
        update.momentum_rows(*_table_and_rows(param, grad), _table(velocity), learning_rate, *hypers)
    else:
        update.momentum(*_lines(param, grad, velocity), learning_rate, *hypers)


def lars_momentum(param: Array, grad: Gradient, learning_rate: Array, velocity: Array, mu: float = 0.9,
                  lars_coeff: float = 0.001, lars_weight_decay: float = 0.0005, epsilon: float = 0.0,
                  rescale_grad: float = 1.0, squares: tuple[Array, Array] | None = None) -> None:
    """Momentum with a rate in the ratio of the norms of parameter and gradient.

    ``squares`` are the two sums of squares, [1] float64 each, of the whole variable where ``param`` is a slice of
    it. Rows not mentioned change as with a zero gradient.
    """
    param, grad, velocity = _lines(param, _dense(grad), velocity)
    squares = squares or (square_sum(param), square_sum(grad))
    update.lars(param, grad, velocity, learning_rate, *squares,
                mu, lars_coeff, lars_weight_decay, epsilon, rescale_grad)


def adagrad(param: Array, grad: Gradient, learning_rate: Array, moment: Array, epsilon: float = 1e-6) -> None:
    """m += g^2; p -= lr g / (sqrt(m) + epsilon). Rows not mentioned stay."""
    if isinstance(grad, Rows):
        update.adagrad_rows(*_table_and_rows(param, grad), _table(moment), learning_rate, epsilon)
    else:
        update.adagrad(*_lines(param, grad, moment), learning_rate, epsilon)


def decayed_adagrad(param: Array, grad: Gradient, learning_rate: Array, moment: Array, decay: float = 0.95,
                    epsilon: float = 1e-6) -> None:
    """Adagrad with m = decay m + (1 - decay) g^2. Of rows not mentioned only the moment decays."""
    update.decayed_adagrad(*_lines(param, _dense(grad), moment), learning_rate, decay, epsilon)


def adam(param: Array, grad: Gradient, learning_rate: Array, moment1: Array, moment2: Array, beta1_pow: Array,
         beta2_pow: Array, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
         lazy_mode: bool = False) -> None:
    """Adam in the 2.x form: epsilon is scaled by sqrt(1 - beta2_pow) like the second moment.

    The beta powers are multiplied after use. Rows not mentioned stay with ``lazy_mode``; else they change as
    with a zero gradient.
    """
    adamw(param, grad, learning_rate, moment1, moment2, beta1_pow, beta2_pow, beta1, beta2, epsilon, 0.0, lazy_mode)


def adamw(param: Array, grad: Gradient, learning_rate: Array, moment1: Array, moment2: Array, beta1_pow: Array,
          beta2_pow: Array, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, coeff: float = 0.01,
          lazy_mode: bool = False) -> None:
    """p *= 1 - lr coeff, then Adam. Rows not mentioned stay with ``lazy_mode``, decay included."""
    ones = (beta1_pow, beta2_pow, learning_rate)
    if isinstance(grad, Rows):
        update.adam_rows(*_table_and_rows(param, grad), _table(moment1), _table(moment2), *ones,
                         beta1, beta2, epsilon, coeff, lazy_mode)
    else:
        update.adam(*_lines(param, grad, moment1, moment2), *ones, beta1, beta2, epsilon, coeff)


def adamax(param: Array, grad: Gradient, learning_rate: Array, moment: Array, inf_norm: Array, beta1_pow: Array,
           beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> None:
    """n = max(|g|, beta2 n + epsilon); p -= lr / (1 - beta1_pow) m / n.

    Rows not mentioned change as with a zero gradient.
    """
    update.adamax(*_lines(param, _dense(grad), moment, inf_norm), beta1_pow, learning_rate, beta1, beta2, epsilon)


def adadelta(param: Array, grad: Gradient, learning_rate: Array, avg_squared_grad: Array, avg_squared_update: Array,
             rho: float = 0.95, epsilon: float = 1e-6, use_learning_rate: bool = False) -> None:
    """A step as large as recent steps were. Of rows not mentioned only the averages decay.

    The original's 1.x and early 2.x kernels ignore the learning rate; later ones multiply the step by it, as
    ``use_learning_rate`` does.
    """
    rate = learning_rate if use_learning_rate else module_of(learning_rate).ones_like(learning_rate)
    update.adadelta(*_lines(param, _dense(grad), avg_squared_grad, avg_squared_update), rate, rho, epsilon)


def rmsprop(param: Array, grad: Gradient, learning_rate: Array, momentum_acc: Array, mean_square: Array,
            mean_grad: Array, rho: float = 0.95, epsilon: float = 1e-6, momentum: float = 0.0,
            centered: bool = False) -> None:
    """mom = momentum mom + lr g / sqrt(mean_square (- mean_grad^2 if centered) + epsilon); p -= mom.

    Rows not mentioned change as with a zero gradient. ``mean_grad`` is left alone unless ``centered``.
    """
    if centered:
        lines = _lines(param, _dense(grad), mean_square, momentum_acc, mean_grad)
        update.centered_rmsprop(*lines, learning_rate, rho, epsilon, momentum)
    else:
        update.rmsprop(*_lines(param, _dense(grad), mean_square, momentum_acc), learning_rate, rho, epsilon, momentum)


def ftrl(param: Array, grad: Gradient, learning_rate: Array, squared: Array, linear: Array, l1: float = 0.0,
         l2: float = 0.0, lr_power: float = -0.5) -> None:
    """Follow the regularised leader. Rows not mentioned stay (a dense zero would set them from ``linear``)."""
    if isinstance(grad, Rows):
        update.ftrl_rows(*_table_and_rows(param, grad), _table(squared), _table(linear), learning_rate,
                         l1, l2, lr_power)
    else:
        update.ftrl(*_lines(param, grad, squared, linear), learning_rate, l1, l2, lr_power)


def lamb(param: Array, grad: Gradient, learning_rate: Array, moment1: Array, moment2: Array, beta1_pow: Array,
         beta2_pow: Array, weight_decay: float = 0.01, beta1: float = 0.9, beta2: float = 0.999,
         epsilon: float = 1e-6) -> None:
    """Adam's direction, scaled to the norm of the whole parameter. Rows not mentioned: as with a zero gradient."""
    direction = lamb_direction(param, grad, moment1, moment2, beta1_pow, beta2_pow, weight_decay, beta1, beta2, epsilon)
    lamb_step(param, direction, learning_rate, (square_sum(param), square_sum(direction)))


def lamb_direction(param: Array, grad: Gradient, moment1: Array, moment2: Array, beta1_pow: Array, beta2_pow: Array,
                   weight_decay: float = 0.01, beta1: float = 0.9, beta2: float = 0.999,
                   epsilon: float = 1e-6) -> Array:
    """The first half of LAMB on a slice: moves moments and beta powers, returns the direction as a new line."""
    lines = _lines(param, _dense(grad), moment1, moment2)
    direction = module_of(param).empty_like(lines[0])
    update.lamb_direction(*lines, beta1_pow, beta2_pow, direction, beta1, beta2, epsilon, weight_decay)
    return direction


def lamb_step(param: Array, direction: Array, learning_rate: Array, squares: tuple[Array, Array]) -> None:
    """The second half: ``squares`` are the sums for the whole parameter and direction, [1] float64 each."""
    update.lamb_step(*_lines(param, direction), learning_rate, *squares)


def _measure_lars(param: Array, grad: Array, *states: Array, **hypers: Any) -> dict[str, Array]:
    return {"param": param, "gradient": grad}


def _step_lars(param: Array, measured: dict[str, Array], learning_rate: Array, *states: Any,
               squares: tuple[Array, Array], **hypers: Any) -> None:
    lars_momentum(param, measured["gradient"], learning_rate, *states, **{**hypers, "squares": squares})


def _measure_lamb(param: Array, grad: Gradient, *states: Any, **hypers: Any) -> dict[str, Array]:
    return {"param": param, "direction": lamb_direction(param, grad, *states, **hypers)}


def _step_lamb(param: Array, measured: dict[str, Array], learning_rate: Array, *states: Array,
               squares: tuple[Array, Array], **hypers: Any) -> None:
    lamb_step(param, measured["direction"], learning_rate, squares)


def dpsgd(param: Array, grad: Gradient, learning_rate: Array, step: Array, batch_size: float = 0.999,
          sigma: float = 1e-8, seed: int = 0) -> None:
    """SGD with one normal number of deviation sigma / batch_size, drawn anew at each step, added to every element.

    ``step`` ([1]) is read on the host, counts from 0 and moves on after use. Gradients come clipped. Rows count as a
    dense gradient.
    """
    now, noise = int(to_host(step)[0]), np.empty(1, np.float32)
    step += 1
    random.normal(noise, random.key_of(seed, "dpsgd"), now, 0, 0.0, sigma)
    sgd(param, _dense(grad) + float(noise[0]) / batch_size, learning_rate)


def dgc_momentum(param: Array, grad: Gradient, learning_rate: Array, velocity: Array, u: Array, v: Array, step: Array,
                 mu: float = 0.9, use_nesterov: bool = False, rampup_begin_step: int = 0, rampup_step: int = 1,
                 sparsity: Sequence[float] = (0.999,)) -> None:
    """One worker's deep gradient compression: plain momentum at first, then SGD with the largest of v.

    ``step`` ([1] int64) is read on the host, counts from 0 and moves on after use. Rows count as a dense gradient.
    """
    now = int(to_host(step)[0])
    step += 1
    grad = _dense(grad)
    if now < rampup_begin_step:
        momentum(param, grad, learning_rate, velocity, mu, use_nesterov)
    else:
        count = dgc_count(grad.size, now - rampup_begin_step, rampup_step, sparsity)
        grad, u, v = _lines(grad, u, v)
        chosen = module_of(grad).empty_like(grad)
        update.dgc_select(grad, u, v, count, mu, use_nesterov, chosen)
        sgd(param, chosen.reshape(param.shape), learning_rate)


def dgc_count(size: int, steps_of_rampup: int, rampup_step: int, sparsity: Sequence[float]) -> int:
    """How many of ``size`` elements are sent so many steps after the ramp-up began: at least one."""
    period = min(len(sparsity) - 1, int(steps_of_rampup * len(sparsity) / rampup_step))
    return max(1, int(size * (1.0 - sparsity[period])))


def join_squares(nodes: Iterable[tuple[int, int, float]]) -> np.ndarray:
    """The sum of squares of a whole variable, [1] float64, from the ``square_nodes`` of all its slices."""
    stack: list[tuple[int, float]] = []
    reached = 0
    for level, index, value in sorted(nodes, key=lambda node: node[1] << node[0]):
        if index << level != reached:
            raise UsageError(f"the slices of a variable must meet: expected one at {reached}, got {index << level}")
        reached += 1 << level
        while stack and index & 1 and stack[-1][0] == level:
            value = stack.pop()[1] + value
            level, index = level + 1, index >> 1
        stack.append((level, value))
    total = 0.0
    for _, value in reversed(stack):
        total = value + total
    return np.array([total])


class MergedRows(Rows):
    """Rows whose ids are inside the table, and unique or with equal values: rules take them as they are."""

    __slots__ = ()


class RowMerger:
    """Merges rows by id into buffers that it keeps: what it returned is overwritten by its next call."""

    def __init__(self) -> None:
        self._room: tuple[Array, Array, Any] | None = None  # ids, values, scratch memory

    def __call__(self, rows: Rows) -> MergedRows:
        """The rows summed by id, in order of first occurrence; ProgramError for an id outside the table."""
        if isinstance(rows, MergedRows):
            return rows
        if rows.height != ANY_HEIGHT:
            row_kernels.check_ids(rows.ids, rows.height)
        return self.checked(rows)

    def checked(self, rows: Rows) -> MergedRows:
        """The same for rows whose ids are known to be good."""
        if self._room is None or not _fits(self._room[1], rows):
            xp = module_of(rows.values)
            self._room = (xp.empty_like(rows.ids), xp.empty_like(rows.values),
                          row_kernels.merge_scratch(len(rows), xp))
        ids, values, scratch = self._room
        count = row_kernels.merge_rows(rows.ids, rows.values, ids, values, scratch)
        return MergedRows(ids[:count], values[:count], rows.height)


def _fits(values: Array, rows: Rows) -> bool:
    """Whether rows merge into an array that is there."""
    return (len(values) >= len(rows) and values.dtype == rows.values.dtype
            and values.shape[1:] == rows.values.shape[1:] and module_of(values) is module_of(rows.values))


def merge(rows: Rows) -> MergedRows:
    """The rows summed by id, as ``MergedRows`` in new arrays."""
    return RowMerger()(rows)


@dataclasses.dataclass(frozen=True)
class State:
    """One array that a rule keeps with a parameter.

    ``name`` is the original's accumulator name, ``slot`` its input slot in the op. ``initial`` is a number or
    the name of the hyper-parameter that gives it. ``like_param`` tells shape and cut: else it is [1].
    """

    name: str
    slot: str
    initial: float | str = 0.0
    like_param: bool = True
    dtype: str | None = None  # None: the parameter's


@dataclasses.dataclass(frozen=True)
class Norms:
    """The two halves of a rule that needs norms of whole variables, for slices of them.

    ``measure(param, grad, *states, **hypers)`` gives {what: array}, whose squares are summed over all slices;
    ``step(param, measured, learning_rate, *states, squares=..., **hypers)`` gets the sums, [1] float64 each, in that
    order.
    """

    measure: Callable[..., dict[str, Array]]
    step: Callable[..., None]


@dataclasses.dataclass(frozen=True)
class Rule:
    """What the ops and the servers must know of one update rule.

    ``untouched_rows`` tells whether rows that a row gradient does not mention "stay", "change" as with a zero
    gradient, or stay only with "lazy_mode". ``needs_whole``: a slice alone cannot be updated (norms, top-k).
    ``setup`` are hyper-parameters that only give states their initial values. ``fused`` is the dense kernel
    with the names of its arguments (or numbers), for ``bind``, ``skipping`` its twin that takes a flag last.
    ``norms``: its halves, where it needs norms.
    """

    name: str
    run: Callable[..., None]
    states: tuple[State, ...] = ()
    hypers: Hypers = dataclasses.field(default_factory=dict)
    untouched_rows: str = "change"
    needs_whole: bool = False
    setup: Hypers = dataclasses.field(default_factory=dict)
    fused: tuple[Any, tuple[str | float, ...]] | None = None
    skipping: Any = None
    norms: Norms | None = None

    def complete(self, hypers: Hypers) -> dict[str, Any]:
        """What ``run`` takes: defaults filled in, each of its default's type (so that kernels compile once)."""
        return self._filled(self.hypers, hypers)

    def new_states(self, param: Array, **hypers: Any) -> list[Array]:
        """The state arrays at their initial values, in the order of ``run``'s arguments, where ``param`` lies."""
        hypers = self._filled({**self.hypers, **self.setup}, hypers)
        return [self._new_state(state, param, hypers) for state in self.states]

    def bind(self, param: Array, grad: Gradient, learning_rate: Array, states: Sequence[Array],
             skip: Array | None = None, **hypers: Any) -> Callable[[], None]:
        """The step over arrays that stay the same, as a call without arguments: a third of the time on small arrays.

        Where ``skip`` ([1], bool, where the parameter lies) is true, the call changes nothing, and never reads it.
        """
        if skip is not None and self.skipping is None:
            run = self.bind(param, grad, learning_rate, states, **hypers)
            return functools.partial(update.unless, skip, [param, *states], run)
        if self.fused is None or isinstance(grad, Rows):
            return functools.partial(self.run, param, grad, learning_rate, *states, **self.complete(hypers))
        given = {"param": param, "grad": grad, "learning_rate": learning_rate, **self.complete(hypers)}
        given |= {state.name: array for state, array in zip(self.states, states, strict=True)}
        shaped = ["param", "grad", *(state.name for state in self.states if state.like_param)]
        given |= zip(shaped, _lines(*(given[name] for name in shaped)), strict=True)
        fused, names = self.fused
        arguments = [given[name] if isinstance(name, str) else name for name in names]
        if skip is None:
            return functools.partial(fused.pick(param), *arguments)
        return functools.partial(self.skipping.pick(param), *arguments, skip)

    def _filled(self, known: Hypers, given: Hypers) -> dict[str, Any]:
        for name in given:
            if name not in known:
                raise UsageError(f"update rule {self.name!r} has no hyper-parameter {name!r}; {nearest(name, known)}")
        return {name: type(default)(given.get(name, default)) for name, default in known.items()}

    @staticmethod
    def _new_state(state: State, param: Array, hypers: Hypers) -> Array:
        initial = hypers[state.initial] if isinstance(state.initial, str) else state.initial
        shape = param.shape if state.like_param else (1,)
        return module_of(param).full(shape, initial, dtype=state.dtype or param.dtype)


BETA_POWERS = (State("beta1_pow_acc", "Beta1Pow", "beta1", like_param=False),
               State("beta2_pow_acc", "Beta2Pow", "beta2", like_param=False))
ADAM_STATES = (State("moment1", "Moment1"), State("moment2", "Moment2"), *BETA_POWERS)
ADAM_HYPERS = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
ADAM_ARGUMENTS = ("param", "grad", "moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc", "learning_rate",
                  "beta1", "beta2", "epsilon")
VELOCITY = State("velocity", "Velocity")

# Every rule by the original's op type.
RULES = {rule.name: rule for rule in (
    Rule("sgd", sgd, untouched_rows="stay", fused=(update.sgd, ("param", "grad", "learning_rate")),
         skipping=update.sgd_unless),
    Rule("momentum", momentum, (VELOCITY,),
         {"mu": 0.9, "use_nesterov": False, "regularization_coeff": 0.0, "rescale_grad": 1.0},
         fused=(update.momentum, ("param", "grad", "velocity", "learning_rate",
                                  "mu", "use_nesterov", "regularization_coeff", "rescale_grad")),
         skipping=update.momentum_unless),
    Rule("lars_momentum", lars_momentum, (VELOCITY,),
         {"mu": 0.9, "lars_coeff": 0.001, "lars_weight_decay": 0.0005, "epsilon": 0.0, "rescale_grad": 1.0},
         needs_whole=True, norms=Norms(_measure_lars, _step_lars)),
    Rule("adagrad", adagrad, (State("moment", "Moment", "initial_accumulator_value"),), {"epsilon": 1e-6},
         untouched_rows="stay", setup={"initial_accumulator_value": 0.0},
         fused=(update.adagrad, ("param", "grad", "moment", "learning_rate", "epsilon"))),
    Rule("decayed_adagrad", decayed_adagrad, (State("moment", "Moment"),), {"decay": 0.95, "epsilon": 1e-6}),
    Rule("adam", adam, ADAM_STATES, {**ADAM_HYPERS, "lazy_mode": False}, untouched_rows="lazy_mode",
         fused=(update.adam, (*ADAM_ARGUMENTS, 0.0)), skipping=update.adam_unless),
    Rule("adamw", adamw, ADAM_STATES, {**ADAM_HYPERS, "coeff": 0.01, "lazy_mode": False}, untouched_rows="lazy_mode",
         fused=(update.adam, (*ADAM_ARGUMENTS, "coeff")), skipping=update.adam_unless),
    Rule("adamax", adamax, (State("moment", "Moment"), State("inf_norm", "InfNorm"), BETA_POWERS[0]), ADAM_HYPERS),
    Rule("adadelta", adadelta,
         (State("_avg_squared_grad", "AvgSquaredGrad"), State("_avg_squared_update", "AvgSquaredUpdate")),
         {"rho": 0.95, "epsilon": 1e-6, "use_learning_rate": False}),
    Rule("rmsprop", rmsprop,
         (State("momentum", "Moment"), State("mean_square", "MeanSquare"), State("mean_grad", "MeanGrad")),
         {"rho": 0.95, "epsilon": 1e-6, "momentum": 0.0, "centered": False}),
    Rule("ftrl", ftrl, (State("squared", "SquaredAccumulator"), State("linear", "LinearAccumulator")),
         {"l1": 0.0, "l2": 0.0, "lr_power": -0.5}, untouched_rows="stay"),
    Rule("lamb", lamb, ADAM_STATES, {"weight_decay": 0.01, **ADAM_HYPERS, "epsilon": 1e-6}, needs_whole=True,
         norms=Norms(_measure_lamb, _step_lamb)),
    Rule("dpsgd", dpsgd, (State("dpsgd_step", "Step", like_param=False),),
         {"batch_size": 0.999, "sigma": 1e-8, "seed": 0}),
    Rule("dgc_momentum", dgc_momentum,
         (VELOCITY, State("_dgc_u_", "U"), State("_dgc_v_", "V"),
          State("dgc_step", "current_step", like_param=False, dtype="int64")),
         {"mu": 0.9, "use_nesterov": False, "rampup_begin_step": 0, "rampup_step": 1, "sparsity": (0.999,)},
         needs_whole=True),
)}


def _lines(param: Array, *others: Array) -> list[Array]:
    """Each array as a line of the same memory, all as long as the parameter."""
    size = param.size
    lines = [param if param.ndim == 1 else _line(param)]
    for one in others:
        if one.size != size:
            raise ProgramError(
                f"an optimizer step needs arrays of the parameter's shape {param.shape}, got {one.shape}: "
                f"do gradient and optimizer state belong to this parameter?")
        lines.append(one if one.ndim == 1 else _line(one))
    return lines


def _line(array: Array) -> Array:
    _refuse_gaps(array)
    return array.ravel()


def _table(array: Array) -> Array:
    """An array as [rows, width] over the same memory."""
    _refuse_gaps(array)
    if array.ndim == 2:
        return array
    height = array.shape[0]
    return array.reshape(height, array.size // height if height else 0)


def _refuse_gaps(array: Array) -> None:
    """A line through an array with gaps would be a copy, and the step would be lost without a word."""
    if not array.flags.c_contiguous:
        raise ProgramError(
            f"an optimizer step works in place on contiguous arrays, got shape {array.shape} with strides "
            f"{array.strides}: pass the whole array or a contiguous part")


def _table_and_rows(param: Array, grad: Rows) -> tuple[Array, Array, Array]:
    """The parameter as a table, then unique ids and their rows."""
    merged = merge(grad)
    table, values = _table(param), _table(merged.values)
    if merged.height != table.shape[0] or len(merged) and values.shape[1] != table.shape[1]:
        raise ProgramError(f"a row gradient must fit its parameter of shape {param.shape}, got {merged!r}")
    return table, merged.ids, values


def _dense(grad: Gradient) -> Array:
    """The gradient as an array, rows that do not occur being zero."""
    if not isinstance(grad, Rows):
        return grad
    merged = merge(grad)
    dense = module_of(merged.values).zeros((merged.height, *merged.values.shape[1:]), merged.values.dtype)
    dense[merged.ids] = merged.values
    return dense
