"""Counts of what a program asked of its device, from the emulation: for tests that promise so many launches a step.

    with counted() as counts:
        executor.run(...)
    assert counts.launches <= 600 and counts.downloads == 1
"""

import contextlib
import ctypes
import os
import types
from pathlib import Path


@contextlib.contextmanager
def counted():
    """Count what the block asks of its device.

    Yields a namespace that has, when the block is over, launches, waits, uploads, downloads, device_copies, blas_calls,
    allocations, collectives and polls (whether an event or stream is done). All threads of the process are counted.
    """
    before, counts = totals(), types.SimpleNamespace()
    yield counts
    for name, total in totals().items():
        setattr(counts, name, total - before[name])


def totals():
    """Counts since the process began, by name."""
    library, found = _library(), {}
    while name := library.emulation_counter_name(len(found)):
        found[name.decode()] = library.emulation_count(len(found))
    return found


def _library():
    library = ctypes.CDLL(str(Path(os.environ["FLEET_EMULATION"], "lib", "libemulation.so")))
    library.emulation_counter_name.restype = ctypes.c_char_p
    library.emulation_count.restype = ctypes.c_long
    return library
