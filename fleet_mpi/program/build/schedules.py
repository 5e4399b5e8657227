"""Learning rates that change with the step, as ops of the program (1.x: ``fluid.layers.exponential_decay``, ...).

All schedules of a program read one counter, ``@LR_DECAY_COUNTER@``, which an op at the head of the program
moves on; the first step sees the ``begin`` of the schedule made first. What follows is the original's ops on
variables of shape [1], which a plan computes in one call (``schedule_fusion.py``). The rate is a persistable
variable, so that it can be read from the scope after a run.
"""

import math
from contextlib import contextmanager, nullcontext

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.engine.schedule_fusion import MARK
from fleet_mpi.program.graph import program as programs, unique_name
from fleet_mpi.program.graph.unique_name import name_scope
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.control_flow import Switch

COUNTER = "@LR_DECAY_COUNTER@"


def autoincreased_step_counter(counter_name=None, begin=1, step=1):
    """The counter of this name (int64 [1]), ``begin`` at the first run and ``step`` more at each further one."""
    main = programs.default_main_program().global_block()
    name = counter_name or "@STEP_COUNTER@"
    if not main.has_var(name):
        _new_variable(name, "int64", begin - step)
        main._prepend_op("increment", {"X": [name]}, {"Out": [name]}, {"step": float(step)})
    return main.var(name)


def _new_variable(name, dtype, value):
    """A persistable number that the startup program sets."""
    fields = dict(name=name, shape=[1], dtype=dtype, persistable=True, stop_gradient=True)
    startup = programs.default_startup_program().global_block()
    Constant(value)(startup.create_var(**fields), startup)
    return programs.default_main_program().global_block().create_var(**fields)


def _decay_step_counter(begin=0):
    """The counter of the schedules as float32, for schedules written in a script."""
    counter = autoincreased_step_counter(COUNTER, begin)
    block = programs.default_main_program().current_block()
    out = block.create_var(name=unique_name.generate("lr_decay_step"), shape=[1], dtype="float32",
                           stop_gradient=True)
    block.append_op("cast", {"X": [counter]}, {"Out": [out]}, {"in_dtype": "int64", "out_dtype": "float32"})
    return out


@contextmanager
def _schedule():
    """Within the block ops are those of a schedule."""
    with programs.default_main_program()._lr_schedule_guard(), name_scope(MARK):
        yield


def _append(type, inputs, attrs=None, out=None):
    """Add an op on numbers; returns its output, a new variable unless one is given."""
    block = programs.default_main_program().current_block()
    out = out or block.create_var(name=unique_name.generate("lr_decay_tmp"), dtype=None, stop_gradient=True)
    block.append_op(type, inputs, {"Out": [out]}, attrs)
    return out


def _constant(value):
    return _append("fill_constant", {}, {"shape": [1], "value": float(value), "dtype": "float32"})


def _two(type, one, other, out=None):
    """An op on two values, numbers among them becoming constants."""
    left, right = (value if isinstance(value, Variable) else _constant(value) for value in (one, other))
    return _append(type, {"X": [left], "Y": [right]}, {"axis": -1} if type.startswith("elementwise") else None, out)


def _plus(one, other, out=None):
    return _two("elementwise_add", one, other, out)


def _times(one, other, out=None):
    return _two("elementwise_mul", one, other, out)


def _over(one, other, out=None):
    return _two("elementwise_div", one, other, out)


def _function(type, value):
    return _append(type, {"X": [value]})


def _step(begin=0):
    """The counter as a floating-point number."""
    counter = autoincreased_step_counter(COUNTER, begin)
    return _append("cast", {"X": [counter]}, {"in_dtype": "int64", "out_dtype": "float32"})


def _rate():
    """The variable of a schedule's result."""
    return _new_variable(unique_name.generate("learning_rate"), "float32", 0.0)


def _periods(decay_steps, staircase):
    """How many times decay_steps have passed, in whole periods with ``staircase``."""
    periods = _over(_step(), _whole(decay_steps, "decay_steps"))
    return _function("floor", periods) if staircase else periods


def exponential_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate * decay_rate ^ (step / decay_steps), in whole periods with ``staircase``."""
    with _schedule():
        share = _two("elementwise_pow", decay_rate, _periods(decay_steps, staircase))
        return _times(learning_rate, share, _rate())


def natural_exp_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate * e ^ (-decay_rate * step / decay_steps)."""
    with _schedule():
        share = _function("exp", _times(_periods(decay_steps, staircase), -decay_rate))
        return _times(learning_rate, share, _rate())


def inverse_time_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate / (1 + decay_rate * step / decay_steps)."""
    with _schedule():
        share = _plus(_times(_periods(decay_steps, staircase), decay_rate), 1)
        return _over(learning_rate, share, _rate())


def polynomial_decay(learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False):
    """From learning_rate to end_learning_rate in decay_steps; with ``cycle`` it starts anew, over longer periods."""
    with _schedule():
        step, length = _step(), _whole(decay_steps, "decay_steps")
        if cycle:
            length = _times(_cycles(step, length), length)
        else:
            step = _two("elementwise_min", step, length)
        left = _two("elementwise_pow", _two("elementwise_sub", 1, _over(step, length)), power)
        distance = _minus(learning_rate, end_learning_rate)
        return _plus(_times(distance, left), end_learning_rate, _rate())


def _cycles(step, decay_steps):
    """How many periods have begun; 1 at step 0."""
    found, zero, one = _function("ceil", _over(step, decay_steps)), _constant(0.0), _constant(1.0)
    with Switch() as switch, switch.case(_two("equal", step, zero)):
        _append("assign", {"X": [one]}, out=found)
    return found


def _minus(one, number):
    return _two("elementwise_sub", one, number) if isinstance(one, Variable) else one - number


def piecewise_decay(boundaries, values):
    """values[0] before step boundaries[0], values[1] before boundaries[1], ..., the last one from then on."""
    if len(values) != len(boundaries) + 1:
        raise UsageError(f"piecewise_decay: expected one value more than boundaries, got {len(values)} values for "
                         f"{len(boundaries)} boundaries")
    if sorted(boundaries) != list(boundaries):
        raise UsageError(f"piecewise_decay: expected rising boundaries, got {list(boundaries)}")
    with _schedule(), Switch() as switch:
        step, rate = _step(), _rate()
        for boundary, value in zip(boundaries, values):
            limit, now = _constant(int(boundary)), _constant(value)
            with switch.case(_two("less_than", step, limit)):
                _append("assign", {"X": [now]}, out=rate)
        last = _constant(values[-1])
        with switch.default() if boundaries else nullcontext():
            _append("assign", {"X": [last]}, out=rate)
    return rate


def noam_decay(d_model, warmup_steps, learning_rate=1.0):
    """learning_rate * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), the first step being 1."""
    with _schedule():
        step = _step(begin=1)
        falling, rising = _two("elementwise_pow", step, -0.5), _times(step, warmup_steps ** -1.5)
        return _times(_scaled(learning_rate, d_model ** -0.5), _two("elementwise_min", falling, rising), _rate())


def cosine_decay(learning_rate, step_each_epoch, epochs):
    """learning_rate * (cos(epoch * pi / epochs) + 1) / 2."""
    with _schedule():
        epoch = _function("floor", _over(_step(), _whole(step_each_epoch, "step_each_epoch")))
        wave = _plus(_function("cos", _over(_times(epoch, math.pi), _whole(epochs, "epochs"))), 1)
        return _times(_scaled(learning_rate, 0.5), wave, _rate())


def _scaled(rate, factor):
    """A rate times a number: a number where the rate is one."""
    return _times(rate, factor) if isinstance(rate, Variable) else rate * factor


def linear_lr_warmup(learning_rate, warmup_steps, start_lr, end_lr):
    """From start_lr to end_lr in warmup_steps, then ``learning_rate``, a number or another schedule."""
    with _schedule(), Switch() as switch:
        rate, step = _rate(), _step()
        with switch.case(_two("less_than", step, _whole(warmup_steps, "warmup_steps"))):
            way = _times(_over(step, warmup_steps), float(end_lr) - float(start_lr))
            _append("assign", {"X": [_plus(way, start_lr)]}, out=rate)
        with switch.default():
            then = learning_rate if isinstance(learning_rate, Variable) else _constant(learning_rate)
            _append("assign", {"X": [then]}, out=rate)
    return rate


def _whole(count, argument):
    """A number of steps above 0."""
    if not count > 0:
        raise UsageError(f"learning-rate schedule: {argument} must be above 0, got {count!r}")
    return count
