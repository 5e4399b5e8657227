"""``paddle.optimizer.lr``: schedulers whose ``step`` the script calls."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.optimizers.lr import (CosineAnnealingDecay, ExponentialDecay, InverseTimeDecay, LambdaDecay,
                                             LinearWarmup, LRScheduler, MultiStepDecay, NaturalExpDecay, NoamDecay,
                                             PiecewiseDecay, PolynomialDecay, ReduceOnPlateau, StepDecay)

__getattr__ = _missing_name("paddle.optimizer.lr", globals(), {
    "piecewise_decay": "fleet_mpi.program.build.schedules:piecewise_decay"})
