"""What a rank reports to the launcher's watcher beside it (``launch/watched.py``): nothing where there is none.

The watcher sees exit codes; a report tells it what they do not: the role, that this rank has said why it fails, and
that it ends in order: who leaves by ``os._exit(0)`` has code 0 too.
"""

import atexit
import os
from collections.abc import Callable

# The file to write to. Taken out of the environment: the number means another file, or none, in processes that a rank
# starts.
_LINE = os.environ.pop("FLEET_MPI_LAUNCH_REPORT", "")
JOINED, FAILS, ENDS = "joined", "fails", "ends"


def tell(word: str, about: str = "") -> None:
    """Write one line to the watcher."""
    try:
        os.write(int(_LINE), f"{word} {about}".rstrip().encode() + b"\n")
    except (ValueError, OSError):
        pass  # not started by our launcher


def promise_to_end(unless: Callable[[], bool]) -> None:
    """Report the end of this process when it comes in order, ``unless()`` somebody else will do so."""
    rank = os.getpid()
    atexit.register(lambda: tell(ENDS) if os.getpid() == rank and not unless() else None)
