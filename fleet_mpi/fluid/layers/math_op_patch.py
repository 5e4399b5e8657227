"""``fluid.layers.math_op_patch``: operators of variables, which they have from the start."""

from fleet_mpi.errors import missing_name as _missing_name


def monkey_patch_variable():
    """Nothing to do: variables have their operators and methods."""


__getattr__ = _missing_name("paddle.fluid.layers.math_op_patch", globals())
