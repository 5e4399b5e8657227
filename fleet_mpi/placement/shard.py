"""The two records of a placement: a variable before it is cut, and one piece of it."""

from __future__ import annotations

from typing import NamedTuple

Shape = tuple[int, ...]


class Variable(NamedTuple):
    """What placing needs to know of a variable."""

    name: str
    shape: Shape
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
    shape: Shape
    server: int

    @property
    def is_cut(self) -> bool:
        """Whether it is a part of its variable, not the whole."""
        return self.name != self.variable

    def gradient_name(self, suffix: str = "") -> str:
        """The name under which the gradient of this shard travels, e.g. ``w@GRAD.block1``; a worker's suffix
        follows."""
        return f"{self.variable}@GRAD{self.name[len(self.variable):]}{suffix}"
