"""``paddle.nn.initializer``: first values of parameters, with the argument lists of 2.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.of_1x import INITIALIZER as _OF_1X
from fleet_mpi.program.build import initializers as _initializers
from fleet_mpi.program.build.initializers import Bilinear, Initializer, set_global_initializer


class Constant(_initializers.Constant):
    """One value everywhere."""

    def __init__(self, value=0.0):
        super().__init__(value)


class Normal(_initializers.Normal):
    """Normally distributed."""

    def __init__(self, mean=0.0, std=1.0, name=None):
        super().__init__(mean, std)


class TruncatedNormal(_initializers.TruncatedNormal):
    """Normally distributed, cut at two standard deviations."""

    def __init__(self, mean=0.0, std=1.0, name=None):
        super().__init__(mean, std)


class Uniform(_initializers.Uniform):
    """Evenly between ``low`` and ``high``."""

    def __init__(self, low=-1.0, high=1.0, name=None):
        super().__init__(low, high)


class XavierNormal(_initializers.Xavier):
    """Glorot's variance, normally distributed."""

    def __init__(self, fan_in=None, fan_out=None, name=None):
        super().__init__(False, fan_in, fan_out)


class XavierUniform(_initializers.Xavier):
    """Glorot's variance, evenly distributed."""

    def __init__(self, fan_in=None, fan_out=None, name=None):
        super().__init__(True, fan_in, fan_out)


class KaimingNormal(_initializers.MSRA):
    """He's variance, normally distributed."""

    def __init__(self, fan_in=None):
        super().__init__(False, fan_in)


class KaimingUniform(_initializers.MSRA):
    """He's variance, evenly distributed."""

    def __init__(self, fan_in=None):
        super().__init__(True, fan_in)


class Assign(_initializers.NumpyArray):
    """The values of an array or a list."""

    def __init__(self, value, name=None):
        super().__init__(value)


__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE

__getattr__ = _missing_name("paddle.nn.initializer", globals(), _OF_1X)
