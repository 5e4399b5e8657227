"""``InputSpec``: the shape, element type and name of what a model is fed with, before there is a variable."""

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.types import as_dtype, var_type
from fleet_mpi.program.graph.variable import as_shape
from fleet_mpi.program.layers.data import static_data


class InputSpec:
    """A description of a variable to feed; sizes that are None or -1 are known only when it is fed."""

    def __init__(self, shape, dtype="float32", name=None):
        self.shape = None if shape is None else as_shape(shape, name or "InputSpec")
        self.dtype = var_type(as_dtype(dtype))
        self.name = name

    @classmethod
    def from_tensor(cls, tensor, name=None):
        """The description of a variable, or of a tensor with values."""
        shape = tensor.shape() if callable(tensor.shape) else tensor.shape
        dtype = tensor._dtype() if callable(getattr(tensor, "_dtype", None)) else tensor.dtype
        return cls(shape, dtype, name or getattr(tensor, "name", None))

    @classmethod
    def from_numpy(cls, ndarray, name=None):
        """The description of an array."""
        return cls(np.shape(ndarray), np.asarray(ndarray).dtype, name)

    def batch(self, batch_size):
        """Put a dimension in front: of this size, -1 for any; returns the description itself."""
        sizes = batch_size if isinstance(batch_size, (list, tuple)) else [batch_size]
        if len(sizes) != 1 or isinstance(sizes[0], bool) or not isinstance(sizes[0], (int, np.integer)):
            raise UsageError(f"InputSpec.batch: expected one whole number, got {batch_size!r}")
        self.shape = (int(sizes[0]), *self.shape)
        return self

    def unbatch(self):
        """Take the first dimension off; returns the description itself."""
        if not self.shape:
            raise UsageError("InputSpec.unbatch: there is no dimension to take off")
        self.shape = self.shape[1:]
        return self

    def declare(self, name=None):
        """The variable to feed, in the default program."""
        return static_data(self.name or name, list(self.shape), self.dtype)

    def __repr__(self):
        return f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name})"

    def __eq__(self, other):
        return isinstance(other, InputSpec) and (self.shape, self.dtype, self.name) == (
            other.shape, other.dtype, other.name)

    def __hash__(self):
        return hash((self.shape, str(self.dtype), self.name))
