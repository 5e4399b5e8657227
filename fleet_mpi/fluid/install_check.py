"""``fluid.install_check``: a command looks instead."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.install_check", globals(), refused={
    "run_check": "it is a command here: python -m fleet_mpi doctor"})
