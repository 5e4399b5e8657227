"""How an update that needs norms of whole variables runs, over all servers of a job.

``update`` is that update, as a generator: it takes the gradients of one server's tables through their recipes, yields
{(variable, what): nodes of the tree of squares} wherever a norm is needed, and is sent {(variable, what): sum, [1]
float64} of the whole variables. Which positions ask is told by the recipes of the whole job: so all servers ask equally
often, whether or not they have anything to ask for.

``Exchange`` runs such updates: every server sends its nodes to every other one and goes on when it has heard of all.
Messages of a pair keep their order, and all servers come to the same exchanges in the same order within a push; those
of different pushes are told apart by (worker, step).
"""

from __future__ import annotations

import operator
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi import update_rules
from fleet_mpi.errors import PeerLost
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.recipes import BoundNorm
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from fleet_mpi.parameter_server.recipes import Recipe
    from fleet_mpi.parameter_server.tables.base import Gradient, Node
    from fleet_mpi.wire.transport import Pending, Transport

    Nodes = dict[tuple[str, str], list[Node]]   # by variable and what is measured
    Sums = dict[Any, np.ndarray]                # by the same, or by the BoundNorm of a group
    Update = Generator[Nodes, Sums, None]
    Turn = tuple[int, int, int]                 # worker, step, and how often the update has asked before

# What fits a message without a body: the nodes of some hundred variables.
ROOM = 1 << 16


def update(gradients: Sequence[Gradient], recipes: Mapping[str, Recipe]) -> Update:
    """The update by these gradients, whose own recipes are among those of the job ({variable: Recipe})."""
    for position in range(most_steps(recipes)):
        here = [(one, one.recipe.steps[position]) for one in gradients if position < len(one.recipe.steps)]
        sums: Sums = {}
        if asks_at(recipes, position):
            sums = yield _asked((one.variable, {"gradient": one.nodes()}) for one, step in here
                                if isinstance(step, BoundNorm))
        for one, step in here:
            if isinstance(step, BoundNorm):
                one.scale(step.factor(sum_for(step, one.variable, recipes, sums)))
            else:
                one.apply(step)
    measured = [(one, one.measure()) for one in gradients]
    sums = (yield _asked((one.variable, found) for one, found in measured)) if asks_at_the_end(recipes) else {}
    for one, found in measured:
        one.finish(tuple(sums[one.variable, what] for what in found))


def _asked(measured: Iterable[tuple[str, dict[str, list[Node]]]]) -> Nodes:
    """The nodes by variable, whose parts may come one by one."""
    found: Nodes = {}
    for variable, by_kind in measured:
        for what, nodes in by_kind.items():
            found.setdefault((variable, what), []).extend(nodes)
    return found


def most_steps(recipes: Mapping[str, Recipe]) -> int:
    """How many steps the longest of the job's recipes has."""
    return max((len(recipe.steps) for recipe in recipes.values()), default=0)


def asks_at(recipes: Mapping[str, Recipe], position: int) -> bool:
    """Whether any variable of the job, here or elsewhere, has a norm at this step: all servers ask or none."""
    return any(position < len(recipe.steps) and isinstance(recipe.steps[position], BoundNorm)
               for recipe in recipes.values())


def asks_at_the_end(recipes: Mapping[str, Recipe]) -> bool:
    """Whether any rule of the job takes norms."""
    return any(recipe.rule_has_norms for recipe in recipes.values())


def sum_for(step: BoundNorm, variable: str, recipes: Mapping[str, Recipe], sums: Sums) -> np.ndarray:
    """The sum of squares that a BoundNorm of a variable is about: its own, or that of its group in order of names."""
    if not step.group:
        return sums[variable, "gradient"]
    if step not in sums:   # once for all variables of the group
        names = sorted(name for name, recipe in recipes.items() if step in recipe.steps)
        total = sums[names[0], "gradient"]
        for name in names[1:]:
            total = total + sums[name, "gradient"]
        sums[step] = total
    return sums[step]


class Exchange:
    """One server's part in all exchanges that are under way."""

    def __init__(self, transport: Transport, index: int, servers: Sequence[int], name_of: Callable[[int], str]) -> None:
        self.transport, self.index, self.name_of = transport, index, name_of
        self.others = {number: rank for number, rank in enumerate(servers) if number != index}
        # By server: what is to come, its header once that is there, bytes.
        self.inboxes: dict[int, tuple[list[Pending], Header | None, np.ndarray]] = {}
        self.buffers: dict[int, np.ndarray] = {}
        self.heard: dict[Turn, dict[int, Nodes]] = {}
        # Updates that wait for the others: what is called at the end, the nodes that were told, since when.
        self.parked: dict[Turn, tuple[Update, Callable[[], object], Nodes, float]] = {}
        self.sending: list[Pending] = []
        self.is_first = True   # whether none has come to its end yet
        for number in self.others:
            self._arm(number)

    def _arm(self, number: int) -> None:
        if number not in self.buffers:
            self.buffers[number] = self.transport.inbox(HEADER_BYTES + ROOM)
        self._expect(number, None, self.buffers[number])

    def _expect(self, number: int, header: Header | None, buffer: np.ndarray) -> None:
        """Wait for a message of another server, or, with its header, for the body that follows it."""
        cuts = protocol.cuts(len(buffer)) if header else [(0, len(buffer))]
        pending = [self.transport.post_receive(self.others[number], Channel.BETWEEN_SERVERS, buffer[start:stop])
                   for start, stop in cuts]
        self.inboxes[number] = pending, header, buffer

    def run(self, key: tuple[int, int], generator: Update, on_end: Callable[[], object]) -> None:
        """Drive an update that yields nodes of squares; ``key`` is (worker, step); ``on_end()`` when it is over."""
        self._go_on((*key, 0), generator, on_end, None)

    def _go_on(self, at: Turn, generator: Update, on_end: Callable[[], object], sums: Sums | None) -> None:
        try:
            nodes = next(generator) if sums is None else generator.send(sums)
        except StopIteration:
            on_end()
            return
        content = messages.encode([[list(name),
                                    [[int(level), int(at), float(value).hex()] for level, at, value in found]]
                                   for name, found in nodes.items()])
        worker, step, turn = at
        header = Header(Kind.SQUARES, self.index, step, count=turn, number=worker)
        for rank in self.others.values():
            self._send(rank, header, content)
        self.parked[at] = generator, on_end, nodes, time.monotonic()
        self._try(at)

    def _send(self, rank: int, header: Header, content: bytes) -> None:
        parts = [messages.message(header, content)]
        if len(content) > ROOM:
            body = np.frombuffer(content, np.uint8)
            parts = [messages.message(header._replace(body=len(body)))]
            parts += [body[start:stop] for start, stop in protocol.cuts(len(body))]
        self.sending += [self.transport.post_send(rank, Channel.BETWEEN_SERVERS, part) for part in parts]

    def _try(self, at: Turn) -> None:
        heard = self.heard.get(at, {})
        if at not in self.parked or len(heard) < len(self.others):
            return
        generator, on_end, own, _ = self.parked.pop(at)
        self.is_first = False
        everything = {name: list(found) for name, found in own.items()}
        for found in self.heard.pop(at, {}).values():
            for name, nodes in found.items():
                everything.setdefault(name, []).extend(nodes)
        sums = {name: update_rules.join_squares(nodes) for name, nodes in everything.items()}
        worker, step, turn = at
        self._go_on((worker, step, turn + 1), generator, on_end, sums)

    def advance(self) -> bool:
        """Take what the other servers sent; returns whether anything came."""
        happened = False
        for number, (pending, header, buffer) in list(self.inboxes.items()):
            if all(one.done() for one in pending):
                happened = True
                self._take(number, pending, header, buffer)
        if self.sending:
            self.sending = [one for one in self.sending if not one.done()]
        return happened

    def late(self, longest: float) -> list[str]:
        """The names of the servers that have been waited for longer than so many seconds."""
        before = time.monotonic() - longest
        late = {number for at, (*_, since) in self.parked.items() if since < before
                for number in self.others.keys() - self.heard.get(at, {}).keys()}
        return [self.name_of(self.others[number]) for number in sorted(late)]

    def close(self) -> None:
        """Expect nothing more from the other servers; call when the last worker has left."""
        for pending, _, _ in self.inboxes.values():
            for one in pending:
                self.transport.withdraw(one)
        self.inboxes = {}

    def _take(self, number: int, pending: list[Pending], header: Header | None, buffer: np.ndarray) -> None:
        source, content = self.name_of(self.others[number]), buffer
        if header is None:
            header = Header.unpack(buffer, pending[0].received, source)
            if header.body:
                self._expect(number, header, messages.room_for(header.body, source))
                return
            content = buffer[HEADER_BYTES:HEADER_BYTES + header.inline]
        nodes = _nodes_in(messages.decode(content, source), source)
        self._arm(number)
        at = header.number, header.step, header.count
        self.heard.setdefault(at, {})[number] = nodes
        self._try(at)


def _nodes_in(value: Any, source: str) -> Nodes:
    """{(variable, what): nodes} as another server sent them; PeerLost where that is damaged."""
    try:
        return {(str(variable), str(what)): [(operator.index(level), operator.index(at), float.fromhex(number))
                                             for level, at, number in found] for (variable, what), found in value}
    except (TypeError, ValueError, OverflowError):
        raise PeerLost(f"{source} sent damaged sums of squares: {value!r:.80}") from None
