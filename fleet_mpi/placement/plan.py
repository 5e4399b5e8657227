"""The shard table of a placement, as data and as text: who keeps what, how evenly, and what one step moves.

Knows sizes only; how bytes are cut into messages on the wire is told by the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi.placement.variables import itemsize

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import Any

    from fleet_mpi.placement.placing import Placement


class ServerLoad(NamedTuple):
    """What one server keeps, and one step of one worker with it."""

    server: int
    variables: int
    shards: int
    size_bytes: int
    # Gradients in, parameters back.
    messages_per_step: int
    bytes_per_step: int


class Plan(NamedTuple):
    """A placement in numbers."""

    placement: Placement
    loads: tuple[ServerLoad, ...]

    @property
    def size_bytes(self) -> int:
        """All parameters together."""
        return sum(load.size_bytes for load in self.loads)

    @property
    def imbalance(self) -> float:
        """The largest server's bytes over the mean of all: 1.0 is even, 2.0 makes every step wait twice as long."""
        if not self.size_bytes:
            return 1.0
        return max(load.size_bytes for load in self.loads) * len(self.loads) / self.size_bytes

    @property
    def messages_per_step(self) -> int:
        """Of one worker with all servers, in both directions."""
        return sum(load.messages_per_step for load in self.loads)

    @property
    def bytes_per_step(self) -> int:
        """Of one worker with all servers, in both directions."""
        return sum(load.bytes_per_step for load in self.loads)

    def shard_rows(self) -> Iterator[tuple[int, str, list[int], int, int, int]]:
        """(server, shard's name, shape, first row, offset, bytes) for every shard, server by server."""
        size = _element_bytes(self.placement)
        for server in range(self.placement.servers):
            for shard in self.placement.of_server(server):
                yield (server, shard.name, list(shard.shape), shard.row_begin, shard.offset,
                       shard.size * size[shard.variable])

    def record(self) -> dict[str, Any]:
        """The same as data, for programs: what JSON can say."""
        names = ("server", "shard", "shape", "first_row", "offset", "bytes")
        return {"shards": [dict(zip(names, row)) for row in self.shard_rows()],
                "servers": [load._asdict() for load in self.loads], "size_bytes": self.size_bytes,
                "imbalance": self.imbalance, "messages_per_step": self.messages_per_step,
                "bytes_per_step": self.bytes_per_step}

    def text(self) -> str:
        """Two tables and a sentence, for people."""
        shards = _table(("server", "shard", "shape", "first row", "offset", "bytes"),
                        [(server, name, "x".join(map(str, shape)) or "scalar", *rest)
                         for server, name, shape, *rest in self.shard_rows()], left=(1, 2))
        share = [f"{load.size_bytes / self.size_bytes:.1%}" if self.size_bytes else "-" for load in self.loads]
        servers = _table(("server", "variables", "shards", "bytes", "share", "messages/step", "bytes/step"),
                         [(*load[:4], part, *load[4:]) for load, part in zip(self.loads, share)])
        return f"{shards}\n\n{servers}\n\n{self.summary()}\n"

    def summary(self) -> str:
        """The whole placement in one sentence."""
        return (f"{_counted(len(self.placement.variables), 'variable')} in "
                f"{_counted(len(self.placement.shards), 'shard')}, {self.size_bytes:,} bytes on "
                f"{_counted(len(self.loads), 'server')}; imbalance {self.imbalance:.3f} (largest over mean); a "
                f"worker's step is {_counted(self.messages_per_step, 'message')} and {self.bytes_per_step:,} bytes")


def plan(placement: Placement, messages_each_way: Sequence[int] | None = None) -> Plan:
    """Count what a placement means.

    Args:
        messages_each_way: for every server, in how many messages its gradients travel, and its parameters back; one
            each by default.
    """
    size = _element_bytes(placement)
    loads = []
    for server in range(placement.servers):
        shards = placement.of_server(server)
        size_bytes = sum(shard.size * size[shard.variable] for shard in shards)
        messages = 1 if messages_each_way is None else messages_each_way[server]
        loads.append(ServerLoad(server, len({shard.variable for shard in shards}), len(shards), size_bytes,
                                2 * messages, 2 * size_bytes))
    return Plan(placement, tuple(loads))


def _element_bytes(placement: Placement) -> dict[str, int]:
    return {name: itemsize(dtype) for name, _, dtype in placement.variables}


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]], left: Collection[int] = ()) -> str:
    """Columns as wide as their longest entry; numbers end, texts (``left``) begin in one line."""
    texts = [heads, *([f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts)]
    return "\n".join("  ".join(cell.ljust(width) if at in left else cell.rjust(width)
                               for at, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in texts)
