"""Starting jobs: ``fleetrun``, the same as ``python -m fleet_mpi.launch`` and ``paddle.distributed.launch``.

Imports nothing by itself: a rank's watcher (``watched``) runs on the standard library, and Ctrl-C may come at any
moment.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not imported: this runs before every rank
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130  # as a shell counts SIGINT


def main(argv: Sequence[str] | None = None, unsaid: tuple[int, int] | None = None, log_dir: str = "log") -> int:
    """Run the job that the command line asks for, to its end; returns its exit code.

    ``unsaid``: (servers, workers) where the words say nothing; ``log_dir``: where they do not say another.
    """
    try:
        from fleet_mpi.launch import starting  # within the try: Ctrl-C during imports is no traceback

        return starting.main(argv, unsaid, log_dir)
    except KeyboardInterrupt:
        return INTERRUPTED
