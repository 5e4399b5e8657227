"""Hot loops. Each kernel is a plain reference, and a faster version where one pays.

    reference/      one file per family, written against the module of the arrays they get: numpy, cupy, any stand-in
    numba/, cuda/   functions of the same names for host arrays and for cupy's, in files of the same names
    products        matrix products, large ones cut over the rank's threads
    threads         the threads a rank computes with
    widening        float16 in memory, float32 in the arithmetic

Import kernels from ``reference``; the versions are imported on first use, so that importing a family compiles nothing.
"""

import importlib
import importlib.util
from contextlib import contextmanager

from fleet_mpi.arrays import module_of

# Every kernel by (family, name): the common test walks it.
KERNELS = {}

# Which versions may compute with the arrays of a module; the reference runs on any.
_PREFIX_OF_MODULE = {"numpy": "numba", "cupy": "cuda"}

_recorded = None


class Kernel:
    """A kernel in all its versions; calling it runs the one for the first argument's kind of array."""

    def __init__(self, reference):
        self.reference = reference
        self.name = reference.__name__
        self.family = reference.__module__.rpartition(".")[2]
        self.__doc__ = reference.__doc__
        self._by_type = {}

    def __call__(self, first, *rest):
        run = self._by_type.get(type(first))
        if run is None:
            run = self.pick(first)
        return run(first, *rest)

    def pick(self, array):
        """The version for arrays like this one: bind it once where a loop calls it often."""
        run = self._by_type.get(type(array))
        if run is None:
            run = self._choose(array)
        return run

    def version(self, prefix):
        """The version from ``<prefix>/<family>.py``, or None where there is none."""
        path = f"fleet_mpi.kernels.{prefix}.{self.family}"
        if importlib.util.find_spec(path) is None:
            return None
        return getattr(importlib.import_module(path), self.name, None)

    def _choose(self, array):
        prefix = _PREFIX_OF_MODULE.get(module_of(array).__name__)
        run = self.version(prefix) if prefix else None
        if _recorded is None:
            self._by_type[type(array)] = run or self.reference
        else:
            # Not remembered: while choices are recorded every call shall come by here.
            _recorded.append((self.name, prefix if run else "reference"))
        return run or self.reference


def kernel(reference):
    """Decorator: make a plain function a Kernel and enter it in KERNELS."""
    made = Kernel(reference)
    KERNELS[made.family, made.name] = made
    return made


@contextmanager
def recorded_choices():
    """A list that gets (kernel name, "reference", "numba" or "cuda") for every choice made in the block.

    A version that was bound before the block (``pick``) is not seen. Costs nothing outside of a block.
    """
    global _recorded
    before, _recorded = _recorded, []
    for each in KERNELS.values():
        each._by_type.clear()
    try:
        yield _recorded
    finally:
        _recorded = before
