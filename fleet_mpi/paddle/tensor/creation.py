"""``paddle.tensor.creation``: variables made from shapes, numbers and other variables."""

from fleet_mpi.errors import NotBuilt as _NotBuilt
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers import tensor as _tensor
from fleet_mpi.program.layers.functional_tensor import meshgrid
from fleet_mpi.program.layers.linear_algebra import diag, diagflat
from fleet_mpi.program.layers.positions import tril, triu
from fleet_mpi.program.layers.tensor import create_tensor, fill_constant
from fleet_mpi.program.layers.tensor import full_like as _full_like


def assign(x, output=None):
    """A copy of a variable, an array or numbers, in ``output`` if one is given."""
    return _tensor.assign(x, output)


def full(shape, fill_value, dtype=None, name=None):
    """One value everywhere."""
    return _tensor.fill_constant(shape, dtype or "float32", fill_value, name=name)


def zeros(shape, dtype=None, name=None):
    """Zeros."""
    return full(shape, 0.0, dtype, name)


def ones(shape, dtype=None, name=None):
    """Ones."""
    return full(shape, 1.0, dtype, name)


def full_like(x, fill_value, dtype=None, name=None):
    """One value everywhere, in the shape of ``x``."""
    return _full_like(x, fill_value, dtype, name=name)


def zeros_like(x, dtype=None, name=None):
    """Zeros in the shape of ``x``."""
    return _full_like(x, 0.0, dtype, name=name)


def ones_like(x, dtype=None, name=None):
    """Ones in the shape of ``x``."""
    return _full_like(x, 1.0, dtype, name=name)


def empty(shape, dtype=None, name=None):
    """A variable whose values do not matter: zeros here."""
    return full(shape, 0.0, dtype, name)


def empty_like(x, dtype=None, name=None):
    """A variable in the shape of ``x`` whose values do not matter: zeros here."""
    return _full_like(x, 0.0, dtype, name=name)


def arange(start=0, end=None, step=1, dtype=None, name=None):
    """start, start + step, ... below end; with one number, from 0 to below it."""
    start, end = (0, start) if end is None else (start, end)
    whole = all(isinstance(one, int) for one in (start, end, step))
    return _tensor.range(start, end, step, dtype or ("int64" if whole else "float32"))


def linspace(start, stop, num, dtype=None, name=None):
    """``num`` numbers evenly from ``start`` to ``stop``, both included."""
    return _tensor.linspace(start, stop, num, dtype or "float32", name)


def eye(num_rows, num_columns=None, dtype=None, name=None):
    """Ones on the diagonal, zeros beside it."""
    return _tensor.eye(num_rows, num_columns, dtype=dtype or "float32", name=name)


def to_tensor(data, dtype=None, place=None, stop_gradient=True):
    """Refuse: there is no eager mode."""
    raise _NotBuilt("paddle.to_tensor: there is no eager mode; feed an array, or paddle.assign(array) in a program")


__getattr__ = _missing_name("paddle.tensor.creation", globals())
