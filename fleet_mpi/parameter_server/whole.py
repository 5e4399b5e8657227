"""A worker's view of variables as wholes: put together from all servers' shards, or spread over them.

One variable at a time, so that neither side needs a second copy of the model; what comes from a server lands where
it belongs. No push or pull of the same client may be under way meanwhile.
"""

import contextlib

import numpy as np

from fleet_mpi import arrays, update_rules
from fleet_mpi.errors import FleetError, PeerLost, Stalled, UsageError, nearest
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.snapshots import bytes_of
from fleet_mpi.wire.protocol import Kind


class Whole:
    """Reads and writes what the servers of a client keep."""

    def __init__(self, client):
        self.client, self.description = client, client.description
        self.placements = {variable.name: self.description.placement
                           for variable in self.description.placement.variables}
        self.recipes = dict(self.description.recipes)
        for table in self.description.row_tables:
            self.placements[table.name], self.recipes[table.name] = table.placement, table.recipe
        self._variables = {variable.name: variable for placement in self.placements.values()
                           for variable in placement.variables}
        self._is_frozen = False

    # ------------------------------------------------------------------ one state of all servers

    @contextlib.contextmanager
    def frozen(self):
        """Within the block all servers stand still, at the same number of pushes of each worker."""
        if self._is_frozen:
            yield
            return
        if self.client.has_left:
            raise UsageError("this worker has said goodbye to the servers: save or load before stop_worker")
        self._freeze()
        self._is_frozen = True
        try:
            yield
        except (PeerLost, Stalled):
            raise   # the job ends; to wait for an answer once more would only delay that
        except BaseException:
            with contextlib.suppress(FleetError):
                self._thaw()
            raise
        else:
            self._thaw()
        finally:
            self._is_frozen = False

    def _freeze(self):
        begun = []
        for link in self.client.links:
            _, inline, _ = self.client.ask(link, Kind.FREEZE)
            if len(inline) % 8 or begun and len(inline) != begun[0].nbytes:
                raise PeerLost(f"{self._name(link)} sent {len(inline)} bytes of push counts")
            begun.append(inline.view(np.int64))
        counts = np.max(begun, axis=0).tobytes()
        for link in self.client.links:
            self.client.ask(link, Kind.FREEZE, counts)

    def _thaw(self):
        for link in self.client.links:
            self.client.ask(link, Kind.THAW)

    # ------------------------------------------------------------------ reading

    def fetch(self, variable):
        """The whole parameter."""
        return self._fetched(variable, lambda shard: ("param", variable, shard.block))

    def fetch_state(self, variable, state):
        """A whole state of the variable's rule, or the number ([1]) where it has one for the variable."""
        key = self._state_key(variable, state)
        if self._state(variable, state).like_param:
            return self._fetched(variable, key)
        return self._fetch_small(self._link_of(self._shards(variable)[0]), key(self._shards(variable)[0]))

    def fetch_rate(self, name):
        """A learning rate, [1]; all servers have the same."""
        return self._fetch_small(self.client.links[0], ("rate", name))

    def fetch_counter(self, name):
        """A schedule's counter; all servers have the same."""
        return self._fetch_small(self.client.links[0], ("counter", name))

    def _fetched(self, variable, key_of_shard):
        described = self._described(variable)
        whole = arrays.empty(described.shape, described.dtype)
        line = whole.reshape(-1)
        for shard in self._shards(variable):
            part = line[shard.offset:shard.offset + shard.size]
            self._fetch(self._link_of(shard), key_of_shard(shard), part.dtype, tuple(shard.shape), bytes_of(part))
        return whole

    def _fetch(self, link, key, dtype, shape, into):
        _, inline, _ = self.client.ask(link, Kind.FETCH, messages.encode(list(key)), into=into)
        if messages.described_one(inline, self._name(link)) != (key, dtype, shape):
            raise PeerLost(f"{self._name(link)} was asked for {list(key)} as {dtype} {list(shape)}, it sent "
                           f"{bytes(inline)!r:.80}")

    def _fetch_small(self, link, key):
        _, inline, body = self.client.ask(link, Kind.FETCH, messages.encode(list(key)))
        found = messages.arrays_of(inline, body, self._name(link))
        if list(found) != [key]:
            raise PeerLost(f"{self._name(link)} was asked for {list(key)} and sent {[list(one) for one in found]}")
        return found[key]

    # ------------------------------------------------------------------ writing

    def store(self, variable, array):
        """Let the servers have this parameter."""
        self._store_shards(variable, array, lambda shard: ("param", variable, shard.block))

    def store_state(self, variable, state, array):
        """Let the servers have this state of the variable's rule."""
        key = self._state_key(variable, state)
        if self._state(variable, state).like_param:
            self._store_shards(variable, array, key)
            return
        for shard in self._shards(variable):
            self._store(self._link_of(shard), key(shard), array)

    def store_rate(self, name, array):
        """Let all servers have this learning rate."""
        for link in self.client.links:
            self._store(link, ("rate", name), array)

    def store_counter(self, name, array):
        """Let the schedules of all servers go on from here."""
        for link in self.client.links:
            self._store(link, ("counter", name), array)

    def _store_shards(self, variable, array, key_of_shard):
        described = self._described(variable)
        if tuple(array.shape) != tuple(described.shape) or array.dtype != np.dtype(described.dtype):
            raise UsageError(f"{variable}: the servers keep {described.dtype} {list(described.shape)}, got {array.dtype} "
                             f"{list(array.shape)}")
        line = np.ascontiguousarray(array).reshape(-1)
        for shard in self._shards(variable):
            self._store(self._link_of(shard), key_of_shard(shard),
                        line[shard.offset:shard.offset + shard.size].reshape(shard.shape))

    def _store(self, link, key, array):
        described, (array,) = messages.manifest({key: array})
        self.client.ask(link, Kind.STORE, described, bytes_of(array))

    # ------------------------------------------------------------------ names

    def _state_key(self, variable, state):
        return lambda shard: ("state", variable, shard.block, state)

    def _state(self, variable, name):
        self._described(variable)
        states = {state.name: state for state in update_rules.RULES[self.recipes[variable].rule].states}
        if name not in states:
            raise UsageError(f"{variable} is updated by {self.recipes[variable].rule}, which has no state {name!r}; "
                             f"{nearest(name, states)}")
        return states[name]

    def _described(self, variable):
        if variable not in self._variables:
            raise UsageError(f"the servers keep no variable {variable!r}; {nearest(variable, self._variables)}")
        return self._variables[variable]

    def _shards(self, variable):
        return self.placements[variable].of_variable(variable)

    def _link_of(self, shard):
        return self.client.links[shard.server]

    def _name(self, link):
        return self.client.name_of(link.rank)
