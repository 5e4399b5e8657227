"""Whether the device that tests have works late: nothing is done before somebody has looked more than once, or waited.

The stand-in does, and the emulation where it is asynchronous; a GPU may or may not be done.
"""

import os

from fleet_mpi.testing import device, stand_in

WORKS_LATE = device is stand_in.device or os.environ.get("FLEET_EMULATION_ASYNC") == "1"


def is_untouched(event):
    """Whether nobody has waited for an event or looked at it, as far as one look can tell."""
    return not event.done or not WORKS_LATE
