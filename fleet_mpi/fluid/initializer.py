"""``fluid.initializer``: first values of parameters."""

import contextlib as _contextlib

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build.initializers import (
    MSRA,
    Bilinear,
    BilinearInitializer,
    Constant,
    ConstantInitializer,
    Initializer,
    MSRAInitializer,
    Normal,
    NormalInitializer,
    NumpyArrayInitializer,
    TruncatedNormal,
    TruncatedNormalInitializer,
    Uniform,
    UniformInitializer,
    Xavier,
    XavierInitializer,
    set_global_initializer,
)


def init_on_cpu():
    """No effect: values are drawn where the variable lies. Learning rates by hand were wrapped in it before 1.6."""
    return _contextlib.nullcontext()


__getattr__ = _missing_name("paddle.fluid.initializer", globals())
