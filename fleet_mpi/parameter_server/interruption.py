"""What an exception from outside (Ctrl-C, a signal's handler) does to a request that is under way.

While a worker waits, the request comes to its end first, within ``FINISHING_S`` of ``ranks.liveness``; then the
exception goes on, and the worker may go on too. A second one, or one that comes while messages are made, cuts the
worker off: what its servers have of it is not known. Whatever it wants of them later, a goodbye included, is refused
with the cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.errors import FleetError, PeerLost
from fleet_mpi.wire.transport import Transport

if TYPE_CHECKING:
    from typing import NoReturn

    from fleet_mpi.arrays import Array
    from fleet_mpi.ranks.channels import Channel


class CutOff(Transport):
    """The transport of a worker that was interrupted in the middle of a request."""

    def __init__(self, before: Transport, name: str, error: BaseException) -> None:
        self.rank = before.rank
        self.cause = (f"{name} was interrupted by {type(error).__name__} in the middle of a request to its servers: "
                      f"what they have of it is not known, and nothing more can be asked of them")

    def post_send(self, peer: int, channel: Channel, array: Array) -> NoReturn:
        """Refuse."""
        raise PeerLost(self.cause)

    def post_receive(self, peer: int, channel: Channel, array: Array) -> NoReturn:
        """Refuse."""
        self.post_send(peer, channel, array)


def is_from_outside(error: BaseException) -> bool:
    """Whether this is no error of the request itself."""
    return not isinstance(error, FleetError)
