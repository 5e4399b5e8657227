"""Kernels as plain functions of arrays, one file per family; what the versions in ``numba`` and ``cuda`` must equal.

Import kernels from here: calling one runs the version for its first argument's kind of array.
"""
