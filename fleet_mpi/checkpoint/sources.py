"""Where the persistable variables of a program were saved: a file each, one for all, or parameters and the rest apart.

Knows names and files; whose values they become is decided above.
"""

from fleet_mpi.checkpoint import blocks
from fleet_mpi.checkpoint.saved_files import SavedFiles, read_settled
from fleet_mpi.checkpoint.variables import choose, is_parameter, is_persistable, values_of
from fleet_mpi.errors import CheckpointMissing


class Source:
    """A folder, and the files in it: none are named where each variable has its own; one has all; two are those of
    ``fluid.save``, the second of which may be missing where nothing but parameters persists."""

    def __init__(self, folder, files=()):
        self.folder, self.files = str(folder), tuple(files)

    def read(self, program, names):
        """Yield (name, array, lod) of some persistable variables; of those that come twice, the last values count."""
        names = set(names)

        def read(files):
            for file, saved in self._files(program):
                wanted = sorted(name for name in saved if name in names)
                if wanted:
                    self._require(files, file)
                    yield from values_of(files, wanted, file, saved)
        return read_settled(self.folder, read)

    def has(self, program, names):
        """Whether there are files for these variables."""
        try:
            files, names = SavedFiles(self.folder), set(names)
        except CheckpointMissing:
            return False  # the folder itself is still to be made
        if not self.files:
            return all(files.has(file) for name in names for file in blocks.files_of(files, name))
        return all(files.has(file) for file, saved in self._files(program) if names.intersection(saved))

    def names(self, program):
        """The files that all persistable variables of a program are in."""
        return [name for file, saved in self._files(program) for name in (saved if file is None else [file])]

    def _files(self, program):
        """(file, or None for one each; {name: variable} of what it has)."""
        predicates = (is_persistable,) if len(self.files) < 2 else (is_parameter, is_other)
        chosen = [choose(program, None, predicate) for predicate in predicates]
        return [(file, saved) for file, saved in zip(self.files or (None,), chosen) if saved]

    def _require(self, files, file):
        if len(self.files) == 2 and file == self.files[0] and not files.has(file):
            path = f"{self.folder}/{file}".removesuffix(".pdparams")
            raise CheckpointMissing(f"{path}.pdparams: no such file; is {path!r} what save() was given?")


def is_other(var):
    """Whether a variable persists and is no parameter."""
    return is_persistable(var) and not is_parameter(var)
