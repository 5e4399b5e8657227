"""Every stream of messages between ranks, by its MPI tag: each keeps its order apart from the others.

No two have the same number, whatever communicators they run on.
"""

import enum


class Channel(enum.IntEnum):
    """MPI's tags."""

    # Between workers and servers.
    REQUEST = 1
    REQUEST_BODY = 2
    REPLY = 3
    REPLY_BODY = 4
    BETWEEN_SERVERS = 5
    ANNOUNCEMENT = 6   # a server has begun
    DECLARATION = 7    # what the workers want servers to keep
    # Among equal workers.
    PART = 11      # of an array, to the rank that sums it
    SUM = 12       # and back
    WHOLE = 13     # a short array, to everybody
    VALUES = 14    # a broadcast's
    GATHERED = 15
    NEWS = 16      # who waits for what, and who has left
    # Between the first ranks of machines.
    BEAT = 21
    # On communicators that a script may use itself: just below 32767, the largest tag that every MPI takes.
    ARRIVED = 32701
    RECORD = 32702
    TABLE = 32703
    LEAVING = 32704
    PREEMPTION = 32711
