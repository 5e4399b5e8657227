"""A toy format: all variables in one numpy archive, by name. This file and a line in ``FORMATS`` are all it takes."""

import io

import numpy as np

from fleet_mpi.arrays import to_host
from fleet_mpi.checkpoint.formats import Value
from fleet_mpi.errors import CheckpointDamaged


class Npz:
    """The archive of this name in a folder."""

    def __init__(self, filename):
        self.filename = filename

    @staticmethod
    def takes(filename):
        """Names that end as archives do."""
        return filename is not None and filename.endswith(".npz")

    def write(self, save, values):
        """Write all values into the archive; an archive has no LoD."""
        memory = io.BytesIO()
        np.savez(memory, **{value.name: to_host(value.array) for value in values})
        with save.open(self.filename) as stream:
            stream.write(memory.getvalue())

    def read(self, files, names, saved):
        """Yield the values of these variables."""
        archive = self._archive(files)
        missing = sorted(set(names) - set(archive.files))
        if missing:
            raise CheckpointDamaged(f"{self.filename}: has no {', '.join(missing)}")
        for name in sorted(names):
            yield Value(name, archive[name])

    def files(self, names, folder=None):
        """The one archive."""
        return [self.filename]

    def names(self, folder):
        """As the archive says."""
        return sorted(self._archive(folder).files)

    def _archive(self, files):
        return np.load(io.BytesIO(files.read(self.filename)), allow_pickle=False)
