"""The two records of a placement: a variable before it is cut, and one piece of it."""

from typing import NamedTuple


class Variable(NamedTuple):
    """What placing needs to know of a variable."""

    name: str
    shape: tuple
    dtype: str = "float32"


class Shard(NamedTuple):
    """The rows of one variable that one server keeps."""

    variable: str
    block: int
    name: str
    # In elements of the variable, flattened in C order.
    offset: int
    size: int
    # Along the first axis.
    row_begin: int
    rows: int
    shape: tuple
    server: int

    @property
    def is_cut(self):
        """Whether it is a part of its variable, not the whole."""
        return self.name != self.variable

    def gradient_name(self, suffix=""):
        """The name under which the gradient of this shard travels, e.g. ``w@GRAD.block1``; a worker's suffix
        follows."""
        return f"{self.variable}@GRAD{self.name[len(self.variable):]}{suffix}"
