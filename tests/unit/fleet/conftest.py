"""No test finds a trace of a launcher in the environment; a network to train, and its training."""

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.math import square_error_cost
from fleet_mpi.program.layers.reduction import mean

LAUNCHED = ("TRAINING_ROLE", "PADDLE_", "POD_IP", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "CPU_NUM")


@pytest.fixture(autouse=True)
def not_launched(monkeypatch):
    for setting in settings.TABLE:
        if setting.name.startswith(LAUNCHED):
            monkeypatch.delenv(setting.name, raising=False)


@pytest.fixture
def loss():
    """The loss of a small regression whose data variables are ``x`` [-1, 4] and ``y`` [-1, 1]."""
    x, y = (data(name=name, shape=[size]) for name, size in (("x", 4), ("y", 1)))
    return mean(square_error_cost(fc(x, 1), y))


@pytest.fixture
def train():
    """Run a program's training steps on one fixed batch; returns the losses."""
    def train(program, startup, loss, steps=5):
        rows = np.linspace(-1, 1, 32, dtype="float32").reshape(8, 4)
        feed = {"x": rows, "y": rows.sum(1, keepdims=True)}
        executor = Executor()
        executor.run(startup)
        return [float(executor.run(program, feed=feed, fetch_list=[loss])[0]) for _ in range(steps)]
    return train
