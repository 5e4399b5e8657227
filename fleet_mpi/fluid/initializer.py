"""``fluid.initializer``: first values of parameters."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.initializers import (MSRA, Bilinear, BilinearInitializer, Constant, ConstantInitializer,
                                            Initializer, MSRAInitializer, Normal, NormalInitializer,
                                            NumpyArrayInitializer, TruncatedNormal, TruncatedNormalInitializer,
                                            Uniform, UniformInitializer, Xavier, XavierInitializer,
                                            set_global_initializer)

__getattr__ = _missing_name("paddle.fluid.initializer", globals())
