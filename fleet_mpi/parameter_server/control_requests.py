"""A worker's requests besides training, each to one server: a greeting, what a save or a load asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.errors import PeerLost, UsageError
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.requests import NOTHING, Part
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fleet_mpi.parameter_server.client import Client
    from fleet_mpi.parameter_server.requests import Link

    Answer = tuple[Header, np.ndarray, np.ndarray | None]   # with the inline part, and the body if it is not placed
    Places = Callable[[Link, np.ndarray], Sequence[np.ndarray]]


class ControlRequests:
    """Asks for a client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def ask(self, link: Link, kind: Kind, inline: bytes = b"", body: np.ndarray | None = None, number: int = 0,
            step: int = 0) -> Answer:
        """One request to one server and its answer: (header, inline, body)."""
        return self.hear(self.start(link, kind, inline, body, number, step), kind)

    def start(self, link: Link, kind: Kind, inline: bytes = b"", body: np.ndarray | None = None, number: int = 0,
              step: int = 0) -> Part:
        """The first half of ``ask``, for servers that cannot answer before the others were asked too."""
        body = NOTHING if body is None else body
        if len(inline) > protocol.PIECE:   # the room that every server has, whatever it knows of this job
            raise UsageError(f"{self.client.name}: {kind.name} to {link.name} has {len(inline)} bytes, a message at "
                             f"most {protocol.PIECE}")
        try:
            part = Part(link).expect()
            part.send(messages.message(Header(kind, self.client.index, step, number=number, body=len(body)), inline))
            part.send_body(body)
        except BaseException as error:
            self.client.give_up(error)
            raise
        return part

    def hear(self, part: Part, kind: Kind) -> Answer:
        """The second half of ``ask``."""
        return self.hear_all([part], kind)[0]

    def hear_all(self, parts: Sequence[Part], kind: Kind, places: Places | None = None) -> list[Answer]:
        """The answers of several requests, whose bodies come at the same time: [(header, inline, body)].

        ``places(link, inline)`` gives the byte arrays that a body fills, each a message or more, and there is no body
        to return; without it, a body comes in a new array.
        """
        try:
            found = [self._open(part, kind, places) for part in parts]
            for part in parts:
                for pending, _, _ in part.body:
                    self.client.wait_within(part, pending)
                self.client.end(part)
        except BaseException as error:
            self.client.give_up(error)
            raise
        self.client.let_go()
        return found

    def _open(self, part: Part, kind: Kind, places: Places | None) -> Answer:
        """Take the header of an answer and post the receives of its body."""
        link, header = part.link, self.client.header_of(part)
        answer = part.reply[HEADER_BYTES:HEADER_BYTES + header.inline].copy()
        body = None if places is not None else messages.room_for(header.body, link.name)
        targets: Sequence[Any] = [body] if places is None else places(link, answer)
        expected = sum(map(len, targets))
        if expected != header.body:
            raise PeerLost(f"{self.client.name}: {link.name} answers {kind.name} with {header.body} bytes, expected "
                           f"{expected}")
        for target in targets:
            part.expect_body(target)
        return header, answer, body
