"""Shapes, parts and places of variables with the argument lists of 2.x (``paddle.tensor``): ``x``, ``axis``,
``keepdim``."""

from fleet_mpi.program.build.variable_arguments import listed
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers import manipulation, math, positions, tensor
from fleet_mpi.program.layers.single_op import single_op
from fleet_mpi.program.ops.elementwise import stretched


def cast(x, dtype):
    """x in another element type."""
    return math.cast(x, dtype)


def concat(x, axis=0, name=None):
    """A list of variables joined along an axis."""
    return manipulation.concat(x, axis, name)


def reshape(x, shape, name=None):
    """Another shape; 0 keeps a size, one -1 takes the rest."""
    return manipulation.reshape(x, shape, name=name)


def transpose(x, perm, name=None):
    """The dimensions in another order."""
    return manipulation.transpose(x, perm, name)


def squeeze(x, axis=None, name=None):
    """Without the dimensions of size 1, or without those of them given."""
    return manipulation.squeeze(x, _as_list(axis), name)


def unsqueeze(x, axis, name=None):
    """With new dimensions of size 1."""
    return manipulation.unsqueeze(x, axis, name)


def stack(x, axis=0, name=None):
    """A list of variables joined along a new axis."""
    return manipulation.stack(x, axis, name)


def unstack(x, axis=0, num=None):
    """The slices along an axis, without that dimension."""
    return manipulation.unstack(x, axis, num)


def split(x, num_or_sections, axis=0, name=None):
    """Pieces along an axis."""
    return manipulation.split(x, num_or_sections, axis, name)


def chunk(x, chunks, axis=0, name=None):
    """So many equal pieces along an axis."""
    return manipulation.split(x, chunks, axis, name)


def scatter(x, index, updates, overwrite=True, name=None):
    """x with some of its rows replaced or added to."""
    return manipulation.scatter(x, index, updates, name, overwrite)


def _as_list(axis):
    return [] if axis is None else list(axis) if isinstance(axis, (list, tuple)) else [axis]


def argsort(x, axis=-1, descending=False, name=None):
    """Where the elements of a sorted x come from."""
    return manipulation.argsort(x, axis, descending, name)[1]


def sort(x, axis=-1, descending=False, name=None):
    """x sorted along an axis."""
    return manipulation.argsort(x, axis, descending, name)[0]


def argmax(x, axis=None, keepdim=False, dtype="int64", name=None):
    """The place of the largest, along an axis or of everything."""
    return _found(manipulation.argmax, x, axis, keepdim, dtype)


def argmin(x, axis=None, keepdim=False, dtype="int64", name=None):
    """The place of the smallest, along an axis or of everything."""
    return _found(manipulation.argmin, x, axis, keepdim, dtype)


def _found(find, x, axis, keepdim, dtype):
    found = find(manipulation.reshape(x, [-1]), 0) if axis is None else find(x, axis)
    found = manipulation.unsqueeze(found, [axis]) if keepdim and axis is not None else found
    return found if dtype == "int64" else math.cast(found, dtype)


def index_select(x, index, axis=0, name=None):
    """The slices along an axis at the positions in ``index``."""
    return manipulation.gather_axis(x, index, axis, name)


def nonzero(x, as_tuple=False):
    """The places of the elements that are not 0, one a row; ``as_tuple``: a column for each dimension."""
    places = manipulation.where(x if x.dtype == "bool" else math.cast(x, "bool"))
    return tuple(manipulation.split(places, len(x.shape), 1)) if as_tuple else places


def broadcast_to(x, shape, name=None):
    """x stretched to a shape."""
    return manipulation.expand_to(x, shape, name)


def unbind(input, axis=0):
    """The slices along an axis, without that dimension."""
    return manipulation.unstack(input, axis)


def t(input, name=None):
    """A matrix transposed; a vector as it is."""
    return input if len(input.shape) < 2 else manipulation.transpose(input, [1, 0], name)


def roll(x, shifts, axis=None, name=None):
    """Elements moved along axes (without one, in the order of memory); those that leave come in at the other end."""
    return single_op("roll", {"X": x}, {"shifts": listed(shifts), "axis": listed(axis)}, name=name)


def unique(x, return_index=False, return_inverse=False, return_counts=False, axis=None, dtype="int64", name=None):
    """The distinct elements in ascending order, and what else is asked for."""
    return positions.unique_sorted(x, return_index, return_inverse, return_counts, axis, dtype, name)


def meshgrid(*args, **kwargs):
    """Each variable spread over the grid that all of them span; a list, or one after the other."""
    given = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    return positions.meshgrid(list(given), kwargs.get("name"))


# Static programs have no writing in place: as in the original, these are the functions without the stroke.
reshape_, squeeze_, unsqueeze_, scatter_ = reshape, squeeze, unsqueeze, scatter


def scatter_nd_add(x, index, updates, name=None):
    """x with ``updates`` added at the positions that ``index`` names."""
    return positions.scatter_nd_add(x, index, updates, name)


def gather_nd(x, index, name=None):
    """The parts of x at the positions that the last dimension of ``index`` names."""
    return manipulation.gather_nd(x, index, name)


def strided_slice(x, axes, starts, ends, strides, name=None):
    """A part of x, taking every so many elements."""
    return manipulation.strided_slice(x, axes, starts, ends, strides)


def reverse(x, axis, name=None):
    """Back to front along some dimensions."""
    return manipulation.flip(x, axis, name)


def broadcast_shape(x_shape, y_shape):
    """The shape that arrays of two shapes are stretched to, as a list of numbers."""
    return list(stretched(tuple(x_shape), tuple(y_shape)))


def conj(x, name=None):
    """A copy of x: numbers here are real."""
    return tensor.assign(x)


def is_tensor(x):
    """Whether x is a variable of a program."""
    return isinstance(x, Variable)


def crop(x, shape=None, offsets=None, name=None):
    """The part of x of a shape, from ``offsets`` on."""
    return positions.crop_tensor(x, shape, offsets, name)
