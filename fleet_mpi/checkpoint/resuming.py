"""Where the random numbers of a training go on after a resume: the run count of its program, noted in the manifest.

A save of all that persists notes the count; loading the same files into the same program takes it up. Loading them into
another program, or some of them, or after one of them was replaced by something else, does not. Of several workers the
one whose save counts notes its own, and all that load it take it.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from fleet_mpi import notices
from fleet_mpi.checkpoint.folders.manifest import Entry
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles
from fleet_mpi.checkpoint.folders.transaction import Save
from fleet_mpi.program.engine import randomness
from fleet_mpi.program.engine.scope import Scope, global_scope
from fleet_mpi.program.graph.program import Program


def note_runs(save: Save, program: Program) -> None:
    """Let a save note how far a program is, beside the files that it has so far: all that persists of the program."""
    seed = 0 if program.random_seed else randomness.program_seed(program)
    save.note(_key(program, save.files), runs=randomness.runs_of(program, global_scope()), seed=seed,
              files=_digest(save.files, save.files))


@contextmanager
def resuming_runs(program: Program, dirname: str, names: Iterable[str], scope: Scope | None = None) -> Iterator[None]:
    """Load these files of a folder within the block; after it the program goes on where they were saved, if it was
    there."""
    files = SavedFiles(dirname)
    noted = files.manifest.notes.get(_key(program, names))
    yield
    if noted is None or noted["files"] != _digest(names, files.manifest.files):
        return
    if files.is_outdated():
        notices.log().warning("%s was saved to while it was loaded: random ops draw from their beginning", dirname)
        return
    randomness.resume(program, global_scope() if scope is None else scope, noted["runs"], noted["seed"])


def _key(program: Program, names: Iterable[str]) -> str:
    """One for each place that a program is saved at: a folder may have several, under different file names."""
    return f"runs of {randomness.identity(program)} at {min(names, default='')}"


def _digest(names: Iterable[str], entries: Mapping[str, Entry]) -> int | None:
    """One number for the contents of some files; None where one of them is unknown."""
    known = [(name, entries[name].size, entries[name].checksum) for name in sorted(names) if name in entries]
    return zlib.crc32(repr(known).encode()) if len(known) == len(list(names)) else None
