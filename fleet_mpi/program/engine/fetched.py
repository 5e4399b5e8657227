"""What ``Executor.run`` returns: arrays of shape [1], and rows of that shape, that also convert like numbers.

NumPy 2.4 refuses ``float()`` and ``"%f"`` of an array of shape [1]; scripts use both, and ``[0]``, and print
predictions of shape [N, 1] row by row.
"""

import numpy as np

from fleet_mpi import arrays


class Fetched(np.ndarray):
    """An array that ``float()``, ``int()`` and ``"%f"`` take when it holds one element."""

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __format__(self, spec):
        return format(self.item(), spec) if spec and self.size == 1 else format(str(self), spec)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        # As for any array, and unlike numpy's default for subclasses, a full reduction is a scalar.
        return array[()] if return_scalar else super().__array_wrap__(array, context)

    def __repr__(self):
        # Scripts print what they fetched, and others read it.
        return repr(self.view(np.ndarray))

    def __reduce__(self):
        # Who unpickles it need not know this package.
        return self.view(np.ndarray).__reduce__()


def fetched(value):
    """A copy of a fetched value for the script to keep."""
    if type(value) is np.ndarray:
        return value.copy().view(Fetched) if value.shape[-1:] == (1,) or value.size == 1 else value.copy()
    if isinstance(value, arrays.Rows):
        return value.to_dense()
    if isinstance(value, list):
        return [fetched(getattr(one, "array", one)) for one in value]
    return fetched(arrays.to_host(value))
