"""Static mode, devices and seeds: what ``paddle`` itself lets a script switch."""

from fleet_mpi.errors import NotBuilt as _NotBuilt
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.places import get_device, set_device
from fleet_mpi.program.program import default_main_program, default_startup_program


def enable_static():
    """Nothing to do: programs are static from the start."""


def disable_static(place=None):
    """Refuse: there is no eager mode."""
    raise _NotBuilt("paddle.disable_static: there is no eager mode; build a program and run it with an Executor")


def in_dynamic_mode():
    """False: programs are static."""
    return False


def seed(seed):
    """Let the default programs draw from this seed."""
    default_main_program().random_seed = default_startup_program().random_seed = seed


__getattr__ = _missing_name("paddle.modes", globals())
