"""``paddle.tensor.random``: variables drawn anew at every run."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers import tensor as _tensor
from fleet_mpi.program.layers.positions import multinomial
from fleet_mpi.program.layers.tensor import randint, randperm


def uniform(shape, dtype=None, min=-1.0, max=1.0, seed=0, name=None):
    """Evenly between two numbers."""
    return _tensor.uniform_random(shape, dtype or "float32", min, max, seed, name)


def rand(shape, dtype=None, name=None):
    """Evenly between 0 and 1."""
    return _tensor.uniform_random(shape, dtype or "float32", 0.0, 1.0, name=name)


def randn(shape, dtype=None, name=None):
    """Normally distributed around 0."""
    return _tensor.gaussian_random(shape, dtype=dtype or "float32", name=name)


def normal(mean=0.0, std=1.0, shape=None, name=None):
    """Normally distributed around ``mean``."""
    return _tensor.gaussian_random(shape, mean, std, name=name)


__getattr__ = _missing_name("paddle.tensor.random", globals())
