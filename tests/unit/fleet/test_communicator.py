"""The communicator that scripts start and stop themselves, where the parameters are in one process."""

from fleet_mpi import fluid
from fleet_mpi.fluid.communicator import Communicator


def test_it_runs_between_start_and_stop():
    made = Communicator(fluid.default_main_program(), mode=1, kwargs={}, envs={})
    assert not made.is_running()
    made.init_with_ctx({}, {})
    made.start()
    assert made.is_running()
    made.stop()
    made.stop()
    assert not made.is_running()
