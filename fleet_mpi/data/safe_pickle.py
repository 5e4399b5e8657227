"""Reads pickles that hold plain values and numpy arrays, and refuses all others.

A pickle can name any function to be called on loading. Data files (CIFAR, files of ``split``) need
only those that numpy itself names, so only these are let through.
"""

import _codecs
import pickle

import numpy as np

from fleet_mpi.errors import UsageError


def load(file, encoding="ASCII"):
    """Load one object; ``encoding`` is for text of Python 2, as in ``pickle.load``."""
    return _Restricted(file, encoding=encoding).load()


def _allowed():
    # numpy's own rebuilding functions, taken from what it writes: their modules moved with numpy 2.
    rebuild = np.empty(0).__reduce__()[0]
    from_buffer = np.empty(0).__reduce_ex__(5)[0]
    scalar = np.float64(0).__reduce__()[0]
    table = {("numpy", "ndarray"): np.ndarray, ("numpy", "dtype"): np.dtype,
             ("_codecs", "encode"): _codecs.encode}
    for package in ("numpy.core", "numpy._core"):
        table[package + ".multiarray", "_reconstruct"] = rebuild
        table[package + ".multiarray", "scalar"] = scalar
        table[package + ".numeric", "_frombuffer"] = from_buffer
    return table


class _Restricted(pickle.Unpickler):

    allowed = _allowed()

    def find_class(self, module, name):
        try:
            return self.allowed[module, name]
        except KeyError:
            raise UsageError(
                f"refused to load a pickle that asks for {module}.{name}: only plain values and numpy "
                "arrays are read from data files") from None
