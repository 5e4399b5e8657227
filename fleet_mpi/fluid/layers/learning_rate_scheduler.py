"""``fluid.layers.learning_rate_scheduler``: learning rates that change with the step."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build.schedules import (
    _decay_step_counter,
    cosine_decay,
    exponential_decay,
    inverse_time_decay,
    linear_lr_warmup,
    natural_exp_decay,
    noam_decay,
    piecewise_decay,
    polynomial_decay,
)

__getattr__ = _missing_name("paddle.fluid.layers.learning_rate_scheduler", globals())
