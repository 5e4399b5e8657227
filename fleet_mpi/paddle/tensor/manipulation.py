"""``paddle.tensor.manipulation``: shapes and parts, with the argument lists of 2.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers import manipulation as _manipulation
from fleet_mpi.program.layers import math as _math
from fleet_mpi.program.layers.manipulation import expand_as_v2 as expand_as
from fleet_mpi.program.layers.manipulation import expand_to as expand
from fleet_mpi.program.layers.manipulation import flatten_contiguous_range as flatten
from fleet_mpi.program.layers.manipulation import flip, gather_nd, shard_index, slice, strided_slice, tile
from fleet_mpi.program.layers.manipulation import gather_axis as gather


def cast(x, dtype):
    """x in another element type."""
    return _math.cast(x, dtype)


def concat(x, axis=0, name=None):
    """A list of variables joined along an axis."""
    return _manipulation.concat(x, axis, name)


def reshape(x, shape, name=None):
    """Another shape; 0 keeps a size, one -1 takes the rest."""
    return _manipulation.reshape(x, shape, name=name)


def transpose(x, perm, name=None):
    """The dimensions in another order."""
    return _manipulation.transpose(x, perm, name)


def squeeze(x, axis=None, name=None):
    """Without the dimensions of size 1, or without those of them given."""
    return _manipulation.squeeze(x, _as_list(axis), name)


def unsqueeze(x, axis, name=None):
    """With new dimensions of size 1."""
    return _manipulation.unsqueeze(x, _as_list(axis), name)


def stack(x, axis=0, name=None):
    """A list of variables joined along a new axis."""
    return _manipulation.stack(x, axis, name)


def unstack(x, axis=0, num=None):
    """The slices along an axis, without that dimension."""
    return _manipulation.unstack(x, axis, num)


def split(x, num_or_sections, axis=0, name=None):
    """Pieces along an axis."""
    return _manipulation.split(x, num_or_sections, axis, name)


def chunk(x, chunks, axis=0, name=None):
    """So many equal pieces along an axis."""
    return _manipulation.split(x, chunks, axis, name)


def scatter(x, index, updates, overwrite=True, name=None):
    """x with some of its rows replaced or added to."""
    return _manipulation.scatter(x, index, updates, name, overwrite)


def _as_list(axis):
    return [] if axis is None else list(axis) if isinstance(axis, (list, tuple)) else [axis]


__getattr__ = _missing_name("paddle.tensor.manipulation", globals())
