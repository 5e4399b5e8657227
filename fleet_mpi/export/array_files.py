"""Variables in one file for other libraries: safetensors, and numpy's npz."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.checkpoint.formats import safetensors_file

if TYPE_CHECKING:
    from typing import BinaryIO

    from fleet_mpi.export.saved_model import SavedModel


def write_safetensors(saved: SavedModel, stream: BinaryIO) -> str:
    """Write all variables as a safetensors file; returns words on them."""
    stream.write(safetensors_file.to_bytes(saved.values))
    return words_on(saved)


def write_npz(saved: SavedModel, stream: BinaryIO) -> str:
    """Write all variables as an npz archive; returns words on them.

    Not by ``np.savez``, which takes names as keywords and cannot take a variable called ``file``.
    """
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array, _ in saved.values:
            # Sizes are unknown when a member is opened: without force_zip64 it may not exceed 2 GiB.
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return words_on(saved)


def words_on(saved: SavedModel) -> str:
    """How many variables and elements there are."""
    return f"{len(saved.values)} variables, {sum(value.array.size for value in saved.values):,} elements"
