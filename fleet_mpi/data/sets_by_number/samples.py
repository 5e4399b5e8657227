"""What all these sets share: a list of samples whose fields become arrays, and checks of their arguments."""

import numpy as np

from fleet_mpi.data import home
from fleet_mpi.data.io_datasets import Dataset
from fleet_mpi.errors import UsageError


class Samples(Dataset):
    """Samples in the list ``data``, each with several fields."""

    data = ()

    def __getitem__(self, idx):
        return tuple(np.array(field) for field in self.data[idx])

    def __len__(self):
        return len(self.data)


def mode_of(dataset, mode, modes):
    """The mode in small letters, one of ``modes``."""
    if not isinstance(mode, str) or mode.lower() not in modes:
        raise UsageError(f"{type(dataset).__name__}: expected the mode {', '.join(modes[:-1])} or {modes[-1]}, got "
                         f"{mode!r}")
    return mode.lower()


def files_of(dataset, download, paths):
    """A context in which the set reads the script's own files, {url: path or None}; see ``home.named``."""
    if not download and None in paths.values():
        raise UsageError(f"{type(dataset).__name__}: download=False, and not every file of the set was named: give the "
                         "paths of your files, or leave download as it is (nothing is fetched; files are looked for "
                         "under DATA_HOME)")
    return home.named(paths)


def paths_of(dataset, download, folder, files):
    """The paths of a set's files, {url: (the script's own path or None, md5)}, or None where a stand-in is to be used.

    Raises:
        UsageError: the script named some of the files, and others are nowhere.
    """
    given = {url: path for url, (path, _) in files.items()}
    with files_of(dataset, download, given):
        found = {url: home.find(url, folder, md5) for url, (_, md5) in files.items()}
    missing = [url.rpartition("/")[2] for url, path in found.items() if path is None]
    if missing and any(given.values()):
        raise UsageError(f"{type(dataset).__name__}: some files were named, but {' and '.join(missing)} neither named "
                         f"nor found in {home.folder(folder)}")
    return None if missing else list(found.values())
