"""How the variables of one save lie in files.

    base              the seam: Format, and the Value that is written and read
    tensor_files      a file per variable, or per block of one (the original's)
    one_file          one file for all variables, in name order (the original's)
    safetensors_file  one file for all variables, by name, for other libraries too
    tensor_stream     the original's encoding of one tensor, on any stream
    tensor_desc       dtype and shape within it
    checked_stream    a stream whose end or damage becomes a sentence

A new format is one file and its line in ``FORMATS``.
"""

from fleet_mpi.checkpoint.formats.base import Format, Value
from fleet_mpi.checkpoint.formats.one_file import OneFile
from fleet_mpi.checkpoint.formats.safetensors_file import SafetensorsFile
from fleet_mpi.checkpoint.formats.tensor_files import TensorFiles

__all__ = ["FORMATS", "Format", "Value", "of"]

# The first that takes the ``filename`` of a save or load: particular names come before any name.
FORMATS: list[type[Format]] = [
    TensorFiles,
    SafetensorsFile,
    OneFile,
]


def of(filename: str | None) -> Format:
    """The format that a ``filename`` argument means; None is a file per variable."""
    return next(kind(filename) for kind in FORMATS if kind.takes(filename))
