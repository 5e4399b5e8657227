"""cupy.cuda.thrust for the emulation: cupy's sorts, by numpy on the same memory.

cupy sorts by Thrust, which lies compiled for GPUs inside an extension of its wheel. ``build.py`` puts this file in the
place of that extension. So sorts are NOT cupy's own here: tests see what is sorted and what follows, not Thrust. The
memory of emulated devices is host memory; all work of the stream is waited for first, which a GPU would not do.
"""

import ctypes

import numpy as np

available = True


def get_build_version():
    """No version of Thrust."""
    return 0


def sort(dtype, data, keys, shape):
    """Sort along the last axis, in place. ``keys`` is working memory that numpy does not need."""
    _array(data, dtype, shape).sort(axis=-1)


def argsort(dtype, indices, data, keys, shape):
    """Write the order of the last axis to ``indices``; sorts the data too, as Thrust does."""
    values = _array(data, dtype, shape)
    _array(indices, np.intp, shape)[...] = values.argsort(axis=-1, kind="stable")
    values.sort(axis=-1)


def lexsort(dtype, indices, keys, number_of_keys, size):
    """Write the order by several keys, the last one first, to ``indices``."""
    _array(indices, np.intp, (size,))[...] = np.lexsort(_array(keys, dtype, (number_of_keys, size)))


def _array(address, dtype, shape):
    """The device's memory as numpy's array, once all work on it is done."""
    import cupy
    cupy.cuda.get_current_stream().synchronize()
    dtype, size = np.dtype(dtype), int(np.prod(shape))
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype, size).reshape(shape)
