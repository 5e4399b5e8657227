"""``paddle.save`` / ``paddle.load``: dictionaries of arrays and numbers in one file, without pickle.

The file is a numpy ``.npz`` archive whatever its name; nested dictionaries use ``/`` in the keys.
"""

import os

import numpy as np

from fleet_mpi.checkpoint import storage
from fleet_mpi.checkpoint.replacing import replacing
from fleet_mpi.errors import CheckpointDamaged, CheckpointMissing, UsageError


def save(obj, path, pickle_protocol=2):
    """Write a (nested) dictionary of arrays, tensors, numbers and texts."""
    with replacing(path) as stream:
        np.savez(stream, **flatten(obj))


def load(path, **configs):
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


def flatten(obj, prefix=""):
    """{"a/b": array} from nested dictionaries."""
    if not isinstance(obj, dict):
        raise UsageError(f"save: expected a dictionary of arrays, got {type(obj).__name__}")
    flat = {}
    for name, value in obj.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{name}/"))
            continue
        array = np.asarray(value)
        if array.dtype == object:
            raise UsageError(f"save: {prefix}{name} is a {type(value).__name__}, which is no array or number")
        flat[f"{prefix}{name}"] = array
    return flat


def unflatten(flat):
    """Nested dictionaries from {"a/b": array}."""
    tree = {}
    for path, array in flat.items():
        *folders, name = path.split("/")
        here = tree
        for folder in folders:
            here = here.setdefault(folder, {})
        here[name] = array
    return tree
