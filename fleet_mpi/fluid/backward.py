"""``fluid.backward``: gradients as ops of a program."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build.backward import append_backward, calc_gradient, gradients

__getattr__ = _missing_name("paddle.fluid.backward", globals())
