"""How cupy indexes where numpy does otherwise, for the stand-in; on numpy's arrays.

Numbers outside an axis are not refused but counted round, since a device cannot raise. ``add.at`` adds in any order.
``maximum.at`` and ``minimum.at`` compare as C's ``fmaxf`` and ``fminf``: in float32, and NaN loses.
"""

import numpy as np

# Every call has its own order, every run of a test the same ones.
_orders = np.random.default_rng(11)


def wrapped(shape, key):
    """The key with every array of numbers counted round the axis it stands for."""
    parts = key if isinstance(key, tuple) else (key,)
    taken = sum(_axes_of(part) for part in parts)
    made, axis = [], 0
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype.kind in "iu" and part.ndim:
            made.append(part % shape[axis] if part.size else part)
        else:
            made.append(part)
        axis += len(shape) - taken if part is Ellipsis else _axes_of(part)
    return tuple(made) if isinstance(key, tuple) else made[0]


def _axes_of(part):
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype.kind == "b" else 1


def add_at(target, index, values):
    """The sums of ``add.at``, with the additions in any order."""
    places = np.arange(target.size).reshape(target.shape)[index]
    given = np.broadcast_to(values, places.shape).reshape(-1)
    order = _orders.permutation(given.size)
    np.add.at(target, np.unravel_index(places.reshape(-1)[order], target.shape), given[order])


def maximum_at(target, index, values):
    """``maximum.at`` by ``fmaxf``."""
    _compare_at(np.fmax, target, index, values)


def minimum_at(target, index, values):
    """``minimum.at`` by ``fminf``."""
    _compare_at(np.fmin, target, index, values)


def _compare_at(compare, target, index, values):
    if target.dtype == np.float64:
        target[index] = target[index].astype(np.float32)
        values = np.asarray(values, np.float32)
    compare.at(target, index, values)


def take(a, indices, axis=None, **out):
    """``take`` in its mode "wrap"."""
    return np.take(a, indices, axis, mode="wrap", **out)


def put(a, indices, values):
    """``put`` in its mode "wrap"."""
    np.put(a, indices, values, mode="wrap")


def take_along_axis(a, indices, axis=-1):
    """``take_along_axis``."""
    return np.take_along_axis(a, indices % (a.size if axis is None else a.shape[axis]), axis)


def put_along_axis(a, indices, values, axis):
    """``put_along_axis``."""
    np.put_along_axis(a, indices % (a.size if axis is None else a.shape[axis]), values, axis)
