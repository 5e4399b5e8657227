"""Learning-rate schedules: each op makes the rate of a step from the step counter, in float64.

``X`` is the counter (int64 [1]). The base rate is the attribute ``learning_rate``, or the variable in
``LearningRate``. A formula is written once: over Python numbers on the host, where ten array calls for
one number would cost more than a small model's step, and over arrays on a device.
"""

import math
from types import SimpleNamespace

import numpy as np

from fleet_mpi.program.registry import op
from fleet_mpi.program.types import as_dtype


def _power(base, exponent):
    return math.inf if base == 0 and exponent < 0 else base ** exponent


HOST = SimpleNamespace(floor=math.floor, ceil=math.ceil, exp=math.exp, cos=math.cos, power=_power, minimum=min,
                       maximum=max, where=lambda condition, one, other: one if condition else other)


def schedule(formula, **attrs):
    """Enter an op called as the formula, ``formula(m, step, rate, **attrs)``, m being HOST or the array module."""
    class Schedule:
        """The learning rate of this step."""

        def infer(k):
            """One number."""
            k.set("Out", [1], as_dtype(k.attr("dtype", "float32")), lod=())

        def run(k):
            """Bound to numbers on the host, to arrays elsewhere."""
            given = {name: k.attr(name, default) for name, default in attrs.items()}
            return (on_host if k.xp is np else on_device)(k, formula, given)

    op(formula.__name__, "X LearningRate?", attrs={"learning_rate": 1.0, "dtype": "float32", **attrs})(Schedule)
    return formula


def on_host(k, formula, given):
    """The call over Python numbers."""
    counter, out, rate, fixed = k["X"], k["Out"], k["LearningRate"], float(k.attr("learning_rate"))

    def run():
        now = fixed if rate is None else rate.item()
        out[0] = formula(HOST, float(counter.item()), now, **given)
    return run


def on_device(k, formula, given):
    """The call over arrays of shape [1]."""
    xp, counter, out, rate, fixed = k.xp, k["X"], k["Out"], k["LearningRate"], float(k.attr("learning_rate"))

    def run():
        now = fixed if rate is None else rate.astype("float64")
        out[...] = formula(xp, counter.astype("float64"), now, **given)
    return run


def _periods(m, step, decay_steps, staircase):
    return m.floor(step / decay_steps) if staircase else step / decay_steps


def exponential_decay(m, step, rate, decay_steps, decay_rate, staircase):
    """rate * decay_rate ^ periods."""
    return rate * m.power(decay_rate, _periods(m, step, decay_steps, staircase))


def natural_exp_decay(m, step, rate, decay_steps, decay_rate, staircase):
    """rate * e ^ (-decay_rate * periods)."""
    return rate * m.exp(-decay_rate * _periods(m, step, decay_steps, staircase))


def inverse_time_decay(m, step, rate, decay_steps, decay_rate, staircase):
    """rate / (1 + decay_rate * periods)."""
    return rate / (1 + decay_rate * _periods(m, step, decay_steps, staircase))


def polynomial_decay(m, step, rate, decay_steps, end_learning_rate, power, cycle):
    """From rate to end_learning_rate over decay_steps; with cycle, over ever longer periods anew."""
    if cycle:
        length = decay_steps * m.maximum(m.ceil(step / decay_steps), 1.0)
    else:
        step, length = m.minimum(step, float(decay_steps)), float(decay_steps)
    return (rate - end_learning_rate) * (1 - step / length) ** power + end_learning_rate


def piecewise_decay(m, step, rate, boundaries, values):
    """values[i] below boundaries[i], the last value beyond."""
    now = values[-1] + 0.0 * step
    for boundary, value in zip(reversed(boundaries), reversed(values[:-1])):
        now = m.where(step < boundary, value, now)
    return now


def noam_decay(m, step, rate, d_model, warmup_steps):
    """Linear growth over warmup_steps, then falling with the root of the step."""
    return rate * d_model ** -0.5 * m.minimum(m.power(step, -0.5), warmup_steps ** -1.5 * step)


def cosine_decay(m, step, rate, step_each_epoch, epochs):
    """Half a cosine over the epochs, constant within each."""
    return rate * 0.5 * (m.cos(m.floor(step / step_each_epoch) * math.pi / epochs) + 1)


def linear_lr_warmup(m, step, rate, warmup_steps, start_lr, end_lr):
    """From start_lr to end_lr over warmup_steps, then the base rate."""
    return m.where(step < warmup_steps, start_lr + (end_lr - start_lr) * (step / warmup_steps), rate)


for _formula in (exponential_decay, natural_exp_decay, inverse_time_decay):
    schedule(_formula, decay_steps=1, decay_rate=1.0, staircase=False)
schedule(polynomial_decay, decay_steps=1, end_learning_rate=0.0001, power=1.0, cycle=False)
schedule(piecewise_decay, boundaries=(), values=(0.0,))
schedule(noam_decay, d_model=1, warmup_steps=1)
schedule(cosine_decay, step_each_epoch=1, epochs=1)
schedule(linear_lr_warmup, warmup_steps=1, start_lr=0.0, end_lr=0.0)
