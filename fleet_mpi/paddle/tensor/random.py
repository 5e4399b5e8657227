"""``paddle.tensor.random``: variables drawn anew at every run."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers import tensor as _tensor
from fleet_mpi.program.layers.math import elementwise_add as _add
from fleet_mpi.program.layers.math import elementwise_mul as _multiply
from fleet_mpi.program.layers.positions import bernoulli, multinomial
from fleet_mpi.program.layers.tensor import randint, randperm
from fleet_mpi.program.graph.variable import Variable as _Variable


def uniform(shape, dtype=None, min=-1.0, max=1.0, seed=0, name=None):
    """Evenly between two numbers."""
    return _tensor.uniform_random(shape, dtype or "float32", min, max, seed, name)


def rand(shape, dtype=None, name=None):
    """Evenly between 0 and 1."""
    return _tensor.uniform_random(shape, dtype or "float32", 0.0, 1.0, name=name)


def randn(shape, dtype=None, name=None):
    """Normally distributed around 0."""
    return _tensor.gaussian_random(shape, dtype=dtype or "float32", name=name)


def standard_normal(shape, dtype=None, name=None):
    """Normally distributed around 0 with standard deviation 1."""
    return randn(shape, dtype, name)


def normal(mean=0.0, std=1.0, shape=None, name=None):
    """Normally distributed around ``mean``; a mean or deviation that is a variable says the shape too."""
    given = [one for one in (mean, std) if isinstance(one, _Variable)]
    if not given:
        return _tensor.gaussian_random([1] if shape is None else shape, mean, std, name=name)
    drawn = _tensor.gaussian_random(_tensor.shape(given[0]), dtype=given[0].dtype)
    drawn = _multiply(drawn, std) if isinstance(std, _Variable) else drawn * float(std)
    return _add(drawn, mean, name=name) if isinstance(mean, _Variable) else drawn + float(mean)


__getattr__ = _missing_name("paddle.tensor.random", globals())
