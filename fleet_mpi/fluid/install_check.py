"""``fluid.install_check``: whether a step can be trained here."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build.trial_step import run_check

__getattr__ = _missing_name("paddle.fluid.install_check", globals())
