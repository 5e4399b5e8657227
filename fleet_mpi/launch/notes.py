"""Notes that ranks' watchers leave for the launcher, in a folder of the job. Needs the standard library only.

Of every kind of note the first one counts, whichever rank it is of.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = "FLEET_MPI_LAUNCH_DIR"  # the variable that names the folder
BEGAN = "began"                  # a rank was started at all
ENDED = "ended"                  # a rank has ended by itself, in whatever way: not by a signal of mpirun
FIRST = "first_to_fail"          # the code that the first rank that failed ended with
SPOKE = "first_to_speak"         # the sentence of the first rank that said why it fails
VANISHED = "vanished"            # a sentence about a rank that did not end in order: the launcher says it if nobody has


def leave_note(folder: str | None, name: str, text: str, rank: str) -> bool:
    """Write a note unless another rank has written one; returns whether this rank was the first, as far as visible."""
    if not folder:
        return True
    own = os.path.join(folder, f"{name}.{rank}")
    try:
        with open(own, "w") as file:
            file.write(text)
        os.link(own, os.path.join(folder, name))  # whole or not at all: this process may be killed at any moment
    except FileExistsError:
        return False
    except OSError:
        return True  # the launcher's folder is not on this host: then mpirun's code has to do
    return True


def read_note(folder: str | None, name: str) -> str | None:
    """The text of the first note of this kind; None where there is none."""
    if not folder:
        return None
    try:
        return Path(folder, name).read_text()
    except OSError:
        return None


def has_cut_short(folder: str) -> bool:
    """Whether a rank that has begun here, as far as its notes can be seen, did not come to an end of its own."""
    began, ended = ({path.suffix for path in Path(folder).glob(f"{name}.*")} for name in (BEGAN, ENDED))
    return bool(began - ended)


def first_code(folder: str | None) -> int | None:
    """What the first rank that failed ended with, by its note; None where there is none."""
    text = read_note(folder, FIRST)
    return None if text is None else int(text)
