"""Learning rates that change with the step, as ops of the program (1.x: ``fluid.layers.exponential_decay``, ...).

All schedules of a program read one counter, ``@LR_DECAY_COUNTER@``, which an op at the head of the program
moves on; the first step sees the ``begin`` of the schedule made first. The rate is a persistable variable, so
that it can be read from the scope after a run. The formulas are in ``ops/schedules.py``.
"""

from fleet_mpi.errors import UsageError
from fleet_mpi.program import program as programs
from fleet_mpi.program import unique_name
from fleet_mpi.program.initializers import Constant
from fleet_mpi.program.variable import Variable

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


def _schedule(type, learning_rate, begin=0, **attrs):
    """Add the counter and the schedule's op; returns the learning-rate variable."""
    program = programs.default_main_program()
    inputs = {}
    if isinstance(learning_rate, Variable):
        inputs["LearningRate"] = [learning_rate]
    else:
        attrs["learning_rate"] = float(learning_rate)
    with program._lr_schedule_guard():
        inputs["X"] = [autoincreased_step_counter(COUNTER, begin)]
        out = _new_variable(unique_name.generate("learning_rate"), "float32", 0.0)
        program.current_block().append_op(type, inputs, {"Out": [out]}, attrs)
    return out


def exponential_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate * decay_rate ^ (step / decay_steps), in whole periods with ``staircase``."""
    return _schedule("exponential_decay", learning_rate, **_decay(decay_steps, decay_rate, staircase))


def natural_exp_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate * e ^ (-decay_rate * step / decay_steps)."""
    return _schedule("natural_exp_decay", learning_rate, **_decay(decay_steps, decay_rate, staircase))


def inverse_time_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate / (1 + decay_rate * step / decay_steps)."""
    return _schedule("inverse_time_decay", learning_rate, **_decay(decay_steps, decay_rate, staircase))


def polynomial_decay(learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False):
    """From learning_rate to end_learning_rate in decay_steps; with ``cycle`` it starts anew, over longer periods."""
    return _schedule("polynomial_decay", learning_rate, decay_steps=_whole(decay_steps, "decay_steps"),
                     end_learning_rate=float(end_learning_rate), power=float(power), cycle=bool(cycle))


def piecewise_decay(boundaries, values):
    """values[0] before step boundaries[0], values[1] before boundaries[1], ..., the last one from then on."""
    if len(values) != len(boundaries) + 1:
        raise UsageError(f"piecewise_decay: expected one value more than boundaries, got {len(values)} values for "
                         f"{len(boundaries)} boundaries")
    if sorted(boundaries) != list(boundaries):
        raise UsageError(f"piecewise_decay: expected rising boundaries, got {list(boundaries)}")
    return _schedule("piecewise_decay", 1.0, boundaries=[int(one) for one in boundaries],
                     values=[float(one) for one in values])


def noam_decay(d_model, warmup_steps, learning_rate=1.0):
    """learning_rate * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), the first step being 1."""
    return _schedule("noam_decay", learning_rate, begin=1, d_model=d_model, warmup_steps=warmup_steps)


def cosine_decay(learning_rate, step_each_epoch, epochs):
    """learning_rate * (cos(epoch * pi / epochs) + 1) / 2."""
    return _schedule("cosine_decay", learning_rate, step_each_epoch=_whole(step_each_epoch, "step_each_epoch"),
                     epochs=_whole(epochs, "epochs"))


def linear_lr_warmup(learning_rate, warmup_steps, start_lr, end_lr):
    """From start_lr to end_lr in warmup_steps, then ``learning_rate``, a number or another schedule."""
    return _schedule("linear_lr_warmup", learning_rate, warmup_steps=_whole(warmup_steps, "warmup_steps"),
                     start_lr=float(start_lr), end_lr=float(end_lr))


def _decay(decay_steps, decay_rate, staircase):
    return {"decay_steps": _whole(decay_steps, "decay_steps"), "decay_rate": float(decay_rate),
            "staircase": bool(staircase)}


def _whole(count, argument):
    """A number of steps above 0."""
    if not count > 0:
        raise UsageError(f"learning-rate schedule: {argument} must be above 0, got {count!r}")
    return count
