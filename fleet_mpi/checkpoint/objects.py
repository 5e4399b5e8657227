"""``paddle.save`` / ``paddle.load``: dictionaries of arrays and numbers in one file, without pickle.

The file is a numpy ``.npz`` archive whatever its name; nested dictionaries use ``/`` in the keys.
"""

import os
from typing import Any, TypeAlias

import numpy as np

from fleet_mpi.checkpoint.folders import storage
from fleet_mpi.checkpoint.folders.replacing import replacing
from fleet_mpi.errors import CheckpointDamaged, CheckpointMissing, UsageError

Tree: TypeAlias = dict[str, Any]  # arrays and numbers by name, or such dictionaries again: this deep types cannot say


def save(obj: Tree, path: str, pickle_protocol: int = 2) -> None:
    """Write a (nested) dictionary of arrays, tensors, numbers and texts."""
    with replacing(path) as stream:
        arrays: dict[str, Any] = flatten(obj)   # numpy's hints have no names but its own
        np.savez(stream, **arrays)


def load(path: str, **configs: Any) -> Tree:
    """Read what ``save`` wrote: a (nested) dictionary of arrays."""
    if not os.path.isfile(path):
        raise CheckpointMissing(f"{path}: no such file")
    with storage.refusals("read", path), open(path, "rb") as stream:
        try:
            with np.load(stream, allow_pickle=False) as archive:
                return unflatten({name: archive[name] for name in archive.files})
        # Whatever numpy and zipfile make of a foreign or damaged file.
        except Exception as error:
            raise CheckpointDamaged(f"{path}: damaged, or not a file that save() wrote: {error}") from None


def flatten(obj: Tree, prefix: str = "") -> dict[str, np.ndarray]:
    """{"a/b": array} from nested dictionaries."""
    if not isinstance(obj, dict):
        raise UsageError(f"save: expected a dictionary of arrays, got {type(obj).__name__}")
    flat: dict[str, np.ndarray] = {}
    for name, value in obj.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{name}/"))
            continue
        array = np.asarray(value)
        if array.dtype == object:
            raise UsageError(f"save: {prefix}{name} is a {type(value).__name__}, which is no array or number")
        flat[f"{prefix}{name}"] = array
    return flat


def unflatten(flat: dict[str, np.ndarray]) -> Tree:
    """Nested dictionaries from {"a/b": array}."""
    tree: Tree = {}
    for path, array in flat.items():
        *folders, name = path.split("/")
        here = tree
        for folder in folders:
            here = here.setdefault(folder, {})
        here[name] = array
    return tree
