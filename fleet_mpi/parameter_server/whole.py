"""A worker's view of variables as wholes: put together from all servers' shards, or spread over them.

One variable at a time, so that neither side needs a second copy of the model; what comes from a server lands where
it belongs. No push or pull of the same client may be under way meanwhile.
"""

import contextlib

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import FleetError, PeerLost, UsageError
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.kept import Contents, Kept
from fleet_mpi.parameter_server.snapshots import ALONE, bytes_of
from fleet_mpi.wire.protocol import Kind


class Whole:
    """Reads and writes what the servers of a client keep."""

    def __init__(self, client):
        self.client, self.contents = client, Contents(client.description)
        self._is_frozen = self._is_broken = False

    # ------------------------------------------------------------------ one state of all servers

    @contextlib.contextmanager
    def frozen(self, alone=False):
        """Within the block all servers stand still, at the same number of pushes of each worker.

        Other workers may read at the same time; not if this one is ``alone``, as it must be to write.
        """
        if self._is_frozen:
            yield
            return
        if self.client.has_left:
            raise UsageError("this worker has said goodbye to the servers: save or load before stop_worker")
        self._is_frozen = True
        try:
            self._freeze(ALONE if alone else 0)
            yield
        finally:
            self._is_frozen = False
            # Else the job ends; to wait for an answer once more would only delay that.
            if not (self._is_broken or self.client.is_cut_off):
                self._thaw()

    def _freeze(self, number=0):
        begun = []
        for link in self.client.links:
            inline, _ = self._ask(link, Kind.FREEZE, number=number)
            if len(inline) % 8 or begun and len(inline) != begun[0].nbytes:
                raise PeerLost(f"{self._name(link)} sent {len(inline)} bytes of push counts")
            begun.append(inline.view(np.int64))
        counts = np.max(begun, axis=0).tobytes()
        # All are told before one is waited for: a push with norms is applied by all servers together.
        self._ask_all(Kind.FREEZE, counts)

    def _thaw(self):
        self._ask_all(Kind.THAW)

    def _ask_all(self, kind, inline=b""):
        with self._breaking():
            for part in [self.client.start(link, kind, inline) for link in self.client.links]:
                self.client.hear(part, kind)

    def _ask(self, link, kind, inline=b"", body=None, into=None, number=0):
        """(inline, body) of the answer."""
        with self._breaking():
            _, inline, body = self.client.ask(link, kind, inline, body, number, into=into)
        return inline, body

    @contextlib.contextmanager
    def _breaking(self):
        """An error of a request within the block ends the job."""
        try:
            yield
        except FleetError:
            self._is_broken = True
            raise

    # ------------------------------------------------------------------ reading

    def fetch(self, variable):
        """The whole parameter."""
        return self.fetch_kept(Kept("param", variable))

    def fetch_state(self, variable, state):
        """A whole state of the variable's rule, or the number ([1]) where it has one for the variable."""
        return self.fetch_kept(Kept("state", variable, state))

    def fetch_rate(self, name):
        """A learning rate, [1]; all servers have the same."""
        return self.fetch_kept(Kept("rate", name))

    def fetch_counter(self, name):
        """A schedule's counter; all servers have the same."""
        return self.fetch_kept(Kept("counter", name))

    def fetch_kept(self, kept):
        """What a Kept names, whole."""
        if not self._is_spread(kept):
            link, key = self._copies(kept)[0]
            return self._fetch_small(link, key)
        shape, dtype = self.contents.shape_and_dtype(kept)
        whole = arrays.empty(shape, dtype)
        line = whole.reshape(-1)
        for shard in self._shards(kept):
            part = line[shard.offset:shard.offset + shard.size]
            self._fetch(self.client.links[shard.server], _key(kept, shard), dtype, tuple(shard.shape), bytes_of(part))
        return whole

    def _fetch(self, link, key, dtype, shape, into):
        inline, _ = self._ask(link, Kind.FETCH, messages.encode(list(key)), into=into)
        if messages.described_one(inline, self._name(link)) != (key, dtype, shape):
            raise PeerLost(f"{self._name(link)} was asked for {list(key)} as {dtype} {list(shape)}, it sent "
                           f"{bytes(inline)!r:.80}")

    def _fetch_small(self, link, key):
        inline, body = self._ask(link, Kind.FETCH, messages.encode(list(key)))
        found = messages.arrays_of(inline, body, self._name(link))
        if list(found) != [key]:
            raise PeerLost(f"{self._name(link)} was asked for {list(key)} and sent {[list(one) for one in found]}")
        return found[key]

    # ------------------------------------------------------------------ writing

    def store(self, variable, array):
        """Let the servers have this parameter."""
        self.store_kept(Kept("param", variable), array)

    def store_state(self, variable, state, array):
        """Let the servers have this state of the variable's rule."""
        self.store_kept(Kept("state", variable, state), array)

    def store_rate(self, name, array):
        """Let all servers have this learning rate."""
        self.store_kept(Kept("rate", name), array)

    def store_counter(self, name, array):
        """Let the schedules of all servers go on from here."""
        self.store_kept(Kept("counter", name), array)

    def store_kept(self, kept, array):
        """Let the servers have what a Kept names, from a whole array."""
        if kept.kind in ("param", "state"):
            self._check(kept, array)
        if not self._is_spread(kept):
            for link, key in self._copies(kept):
                self._store(link, key, array)
            return
        line = np.ascontiguousarray(array).reshape(-1)
        for shard in self._shards(kept):
            self._store(self.client.links[shard.server], _key(kept, shard),
                        line[shard.offset:shard.offset + shard.size].reshape(shard.shape))

    def _check(self, kept, array):
        shape, dtype = self.contents.shape_and_dtype(kept)
        if (tuple(array.shape), array.dtype) != (shape, dtype):
            raise UsageError(f"{' '.join(kept).strip()}: the servers keep {dtype} {list(shape)}, got {array.dtype} "
                             f"{list(array.shape)}")

    def _store(self, link, key, array):
        described, (array,) = messages.manifest({key: array})
        self._ask(link, Kind.STORE, described, bytes_of(array))

    # ------------------------------------------------------------------ where things are

    def _is_spread(self, kept):
        """Whether each shard has its part, and not a copy of one number."""
        return kept.kind == "param" or kept.kind == "state" and self.contents.state(kept.variable,
                                                                                    kept.state).like_param

    def _shards(self, kept):
        """Those that have elements: for the others a server keeps nothing."""
        return [shard for shard in self.contents.shards(kept.variable) if shard.size]

    def _copies(self, kept):
        """(link, key) of every place that has the same number."""
        if kept.kind == "state":
            return [(self.client.links[shard.server], _key(kept, shard))
                    for shard in self._shards(kept)]
        return [(link, (kept.kind, kept.variable)) for link in self.client.links]

    def _name(self, link):
        return self.client.name_of(link.rank)


def _key(kept, shard):
    """The name of one shard's array on the wire."""
    return ("param", kept.variable, shard.block) if kept.kind == "param" else (
        "state", kept.variable, shard.block, kept.state)
