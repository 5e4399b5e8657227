"""An optimizer's state as a dictionary: accumulators by variable name, and the scheduler's position.

Values are those of the global scope. What is given before ``minimize`` made the accumulators becomes their first value.
"""

import numpy as np

from fleet_mpi import notices
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.optimizers.lr import LRScheduler

SCHEDULER = "LR_Scheduler"


def state_of(optimizer):
    """{name: tensor} of all accumulators, and ``LR_Scheduler`` where one decides the rate."""
    found = {var.name: global_scope().var(var.name).get_tensor() for var in accumulators(optimizer)}
    scheduler = optimizer._learning_rate
    if isinstance(scheduler, LRScheduler):
        found[SCHEDULER] = {name: value for name, value in scheduler.state_dict().items() if value is not None}
    return found


def restore(optimizer, state):
    """Take such a dictionary over; an accumulator that it lacks keeps its value, with a warning."""
    scheduler = optimizer._learning_rate
    if isinstance(scheduler, LRScheduler) and SCHEDULER in state:
        scheduler.set_state_dict({**scheduler.state_dict(),
                                  **{name: _plain(value) for name, value in state[SCHEDULER].items()}})
    made = list(accumulators(optimizer))
    optimizer._first_values = {} if made else {name: np.asarray(value) for name, value in state.items()
                                               if name != SCHEDULER}
    for var in made:
        if var.name in state:
            global_scope().var(var.name).get_tensor().set(np.asarray(state[var.name]).astype(var._dtype))
        else:
            notices.log().warning("%s: the state given has no %r: its value stays", type(optimizer).__name__, var.name)


def accumulators(optimizer):
    """The variables that an optimizer keeps beside its parameters."""
    return (var for held in optimizer._accumulators.values() for var in held.values())


def _plain(value):
    """A number as Python has it, of an array with one element."""
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
