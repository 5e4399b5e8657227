"""Waiting without burning a core, and never for ever.

There is no call that blocks: whoever waits polls. For ``SPIN`` seconds after something happened it only yields,
so that a request that follows soon meets no sleep; then it sleeps for longer and longer. The machine normally
has more ranks than cores, and a rank that spins takes the core of one that computes.
"""

import os
import time
from contextlib import contextmanager

from fleet_mpi.errors import Stalled
from fleet_mpi.ranks import meeting

SPIN = 0.002
LONGEST_SLEEP = 0.01
# Pauses are of milliseconds: a process that did not look for longer than this was stopped, or busy, itself.
STOOD_STILL = 1.0
# A sleep is this part of the time that nothing has happened for: it delays an answer by as little.
SLEEP_PART = 0.015


class Backoff:
    """The pauses of one wait. ``rest`` when nothing happened, ``wake`` when something did."""

    def __init__(self):
        self.since = self.looked = time.monotonic()

    def wake(self):
        """Something happened: spin again."""
        self.since = self.looked = time.monotonic()

    def rest(self):
        """Nothing happened: yield or sleep; returns the seconds since something did.

        Time in which this process stood still itself does not count: the others may have done their part.
        """
        now = time.monotonic()
        if now - self.looked > STOOD_STILL:
            self.since += now - self.looked
        self.looked, idle = now, now - self.since
        if idle < SPIN:
            # Not time.sleep(0), which takes 50 us and more. Threads of this process (readers, loaders) get the
            # interpreter as always, after its switch interval.
            os.sched_yield()
        else:
            time.sleep(min(idle * SLEEP_PART, LONGEST_SLEEP))
        return idle


def deadline():
    """The longest a rank waits for another one, in seconds; FLAGS_rpc_deadline, 0 for ever."""
    return meeting.deadline_s()


def wait_until(is_done, whom, transport=None, longest=None, on_long=None):
    """Poll ``is_done`` until it is true; after ``longest()`` seconds raise Stalled with the sentence ``whom()`` gives.

    ``longest`` is the deadline where it is not given; ``on_long()`` is called once, after a quarter of it. None of
    them is called where nothing is to be waited for.
    """
    if is_done():
        return
    longest = (longest or deadline)()
    backoff = Backoff()
    while not is_done():
        if transport is not None and transport.progress():
            continue
        waited = backoff.rest()
        if on_long is not None and waited > longest / 4:
            on_long()
            on_long = None
        if waited > longest:
            raise Stalled(f"{whom()} (waited {longest:.1f} s; FLAGS_rpc_deadline sets it in ms)")


@contextmanager
def told_by_the_first(index):
    """Where all workers, or all servers, wait for the same: let the first one say so if it stalls."""
    try:
        yield
    except Stalled as error:
        error.told_elsewhere = index > 0
        raise
