"""Where the time of a run goes, function by function: every op's step is a function in ``ops/<family>.py``.

One profile at a time, of the thread that starts it; the report goes to a file, its head to the log.
"""

import cProfile
import io
import pstats
from contextlib import contextmanager

from fleet_mpi import notices
from fleet_mpi.errors import UsageError

_running = None

# The original's words for the order of the report.
_ORDERS = {None: "tottime", "default": "tottime", "total": "cumtime", "calls": "ncalls", "max": "tottime",
           "min": "tottime", "ave": "tottime"}


def start_profiler(state, tracer_option="Default"):
    """Begin to profile; ``state`` is CPU, GPU or All, and all profile the host."""
    global _running
    if state not in ("CPU", "GPU", "All"):
        raise UsageError(f"start_profiler: state must be CPU, GPU or All, got {state!r}")
    if _running is None:
        _running = cProfile.Profile()
        _running.enable()


def stop_profiler(sorted_key=None, profile_path="/tmp/profile"):
    """End the profile, write the report to a file and log its head."""
    global _running
    if sorted_key not in _ORDERS:
        raise UsageError(f"stop_profiler: sorted_key must be one of {sorted(key for key in _ORDERS if key)}, "
                         f"got {sorted_key!r}")
    if _running is None:
        return
    _running.disable()
    text, _running = _report(_running, _ORDERS[sorted_key]), None
    with open(profile_path, "w") as file:
        file.write(text)
    notices.log().info("profile, the whole of it in %s:\n%s", profile_path, "\n".join(text.splitlines()[:20]))


def reset_profiler():
    """Forget what was measured so far."""
    global _running
    if _running is not None:
        _running.disable()
        _running = cProfile.Profile()
        _running.enable()


@contextmanager
def profiler(state, sorted_key=None, profile_path="/tmp/profile", tracer_option="Default"):
    """Profile what runs within the block."""
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


@contextmanager
def cuda_profiler(output_file, output_mode=None, config=None):
    """Nothing: the vendor's own tools profile a GPU."""
    yield


def _report(profile, order):
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats(order).print_stats()
    return text.getvalue()
