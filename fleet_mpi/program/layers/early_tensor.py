"""Layers with the argument lists that 1.7 and 1.8 gave their first ``paddle.tensor``: ``out``, ``device``, ``dims``."""

from fleet_mpi.program.layers import functional_math, manipulation, math, tensor
from fleet_mpi.program.layers.single_op import single_op


def flip(input, dims, name=None):
    """Back to front along some dimensions."""
    return manipulation.flip(input, dims, name)


def elementwise_equal(x, y, axis=-1, name=None):
    """x == y, element by element."""
    return single_op("equal", {"X": x, "Y": y}, {"axis": axis}, name=name, dtype="bool")


def full(shape, fill_value, out=None, dtype=None, device=None, stop_gradient=True, name=None):
    """One value everywhere, written to ``out`` where that is given."""
    made = tensor.fill_constant(shape, dtype or "float32", fill_value, out=out, name=name)
    made.stop_gradient = stop_gradient
    return made


def full_like(input, fill_value, out=None, dtype=None, device=None, stop_gradient=True, name=None):
    """One value everywhere, in the shape of ``input``."""
    made = tensor.full_like(input, fill_value, dtype, out, name)
    made.stop_gradient = stop_gradient
    return made


def randint(low, high=None, shape=None, out=None, dtype=None, device=None, stop_gradient=False, name=None):
    """Whole numbers from ``low`` (or 0) up to, but not including, ``high`` (or ``low``)."""
    return _written(tensor.randint(low, high, [1] if shape is None else shape, dtype or "int64", name), out,
                    stop_gradient)


def randn(shape, out=None, dtype=None, device=None, stop_gradient=True, name=None):
    """Normally distributed around 0."""
    return _written(tensor.gaussian_random(shape, dtype=dtype or "float32", name=name), out, stop_gradient)


def _written(made, out, stop_gradient):
    made = made if out is None else tensor.assign(made, out)
    made.stop_gradient = stop_gradient
    return made


def clamp(input, min=None, max=None, output=None, name=None):
    """The input held between two bounds, each of which may be missing; written to ``output`` where that is given."""
    made = functional_math.clip(input, min, max, name)
    return made if output is None else tensor.assign(made, output)


def div(x, y, out=None, name=None):
    """x / y, written to ``out`` where that is given."""
    made = math.elementwise_div(x, y, name=name)
    return made if out is None else tensor.assign(made, out)


def elementwise_sum(inputs, name=None):
    """The sum of a list of variables."""
    return math.sums(inputs)
