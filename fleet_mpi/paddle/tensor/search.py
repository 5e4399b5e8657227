"""``paddle.tensor.search``: sorting and finding."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers import manipulation as _manipulation
from fleet_mpi.program.layers.manipulation import argsort as _argsort
from fleet_mpi.program.layers.manipulation import topk_along as topk
from fleet_mpi.program.layers.manipulation import where
from fleet_mpi.program.layers.math import cast as _cast


def argsort(x, axis=-1, descending=False, name=None):
    """Where the elements of a sorted x come from."""
    return _argsort(x, axis, descending, name)[1]


def sort(x, axis=-1, descending=False, name=None):
    """x sorted along an axis."""
    return _argsort(x, axis, descending, name)[0]


def argmax(x, axis=None, keepdim=False, dtype="int64", name=None):
    """The place of the largest, along an axis or of everything."""
    return _found(_manipulation.argmax, x, axis, keepdim, dtype)


def argmin(x, axis=None, keepdim=False, dtype="int64", name=None):
    """The place of the smallest, along an axis or of everything."""
    return _found(_manipulation.argmin, x, axis, keepdim, dtype)


def _found(find, x, axis, keepdim, dtype):
    found = find(_manipulation.reshape(x, [-1]), 0) if axis is None else find(x, axis)
    found = _manipulation.unsqueeze(found, [axis]) if keepdim and axis is not None else found
    return found if dtype == "int64" else _cast(found, dtype)


__getattr__ = _missing_name("paddle.tensor.search", globals())
