"""The one polling loop: whoever waits for another rank waits here, without burning a core and never for ever.

No call of ours blocks: whoever waits polls. For ``SPIN_S`` seconds after something happened the loop only yields, so
that an answer that follows soon meets no sleep; then it sleeps for longer and longer. A machine normally has more ranks
than cores, and a rank that spins takes the core of one that computes. Settings are read before the loop, not in it.
Knows nothing of messages: what is polled is handed in.
"""

import os
import time
from collections.abc import Callable

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem, Stalled

SPIN_S = 0.002
LONGEST_SLEEP_S = 0.01
# A sleep is this part of the time that nothing has happened for: it delays an answer by as little.
SLEEP_PART = 0.015
# Pauses are of milliseconds: a process that did not poll for longer than this was stopped, or busy, itself.
STOOD_STILL_S = 1.0
LOOK_EVERY_S = 0.02   # messages are looked for more often than who is late
FOR_EVER_S = 1e9      # a number that every timer takes


def deadline_s() -> float:
    """The longest a rank waits for another one, in seconds: FLAGS_rpc_deadline; 0 ms stand for about 30 years."""
    milliseconds = settings.get("FLAGS_rpc_deadline")
    if milliseconds < 0:
        raise EnvironmentProblem(f"FLAGS_rpc_deadline={milliseconds}: expected a number of milliseconds, or 0 for ever")
    return milliseconds / 1000 or FOR_EVER_S


def spin(is_over: Callable[[], bool], advance: Callable[[], object] | None = None) -> bool:
    """The first part of a wait, for which nothing is looked up: False where nothing has happened for SPIN_S.

    Then ``poll`` goes on, with ``idle_s=SPIN_S``.
    """
    since = time.monotonic()
    while not is_over():
        if advance is not None and advance():
            since = time.monotonic()
        elif time.monotonic() - since > SPIN_S:
            return False
        else:
            os.sched_yield()
    return True


def poll(is_over: Callable[[], bool], advance: Callable[[], object] | None = None,
         look: Callable[[float], None] | None = None, limit_s: float = FOR_EVER_S, idle_s: float = 0.0) -> bool:
    """Poll until ``is_over()``; False where nothing has happened for ``limit_s`` seconds before.

    Args:
        advance: does what can be done now, and says whether anything was: then the seconds count anew.
        look: is told, every LOOK_EVERY_S of a wait, for how many seconds nothing has happened; it may raise.
        idle_s: for how many seconds nothing has happened when it begins.
    """
    polled = time.monotonic()
    since, next_look = polled - idle_s, polled + LOOK_EVERY_S
    while not is_over():
        if advance is not None and advance():
            since = polled = time.monotonic()
            continue
        now = time.monotonic()
        if now - polled > STOOD_STILL_S:
            since += now - polled   # the others may have done their part meanwhile
        polled, idle_s = now, now - since
        if idle_s < SPIN_S:
            # Not time.sleep(0), which takes 50 us and more. Threads of this process (readers, loaders) get the
            # interpreter as always, after its switch interval.
            os.sched_yield()
            continue
        time.sleep(min(idle_s * SLEEP_PART, LONGEST_SLEEP_S))
        if look is not None and now >= next_look:
            next_look = now + LOOK_EVERY_S
            look(idle_s)
        if idle_s > limit_s:
            return False
    return True


def wait_until(is_over: Callable[[], bool], whom: Callable[[], str], advance: Callable[[], object] | None = None,
               limit_s: float | None = None, look: Callable[[float], None] | None = None, idle_s: float = 0.0) -> None:
    """Poll until ``is_over()``; Stalled, with the sentence that ``whom()`` gives, after ``limit_s`` (the deadline)."""
    limit_s = deadline_s() if limit_s is None else limit_s
    if not poll(is_over, advance, look, limit_s, idle_s):
        raise Stalled(f"{whom()} (waited {limit_s:.1f} s; FLAGS_rpc_deadline sets it in ms)")
