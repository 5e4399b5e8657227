"""Where every variable lies, in the original's words: ``program._parameters_on_pservers``. Made when it is asked
for."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from fleet_mpi.transpile.distribution import Distribution


class VarStruct(NamedTuple):
    """What is told of a variable."""

    name: str
    shape: tuple
    dtype: object
    type: object
    lod_level: int
    persistable: bool


class VarDistributed(NamedTuple):
    """One part of a variable on one server; ``offset`` counts the elements before it."""

    origin: VarStruct
    slice: VarStruct
    is_slice: bool
    block_id: int
    offset: int
    vtype: str
    endpoint: str

    def __str__(self) -> str:
        return (f"{self.vtype} {self.origin.name} {list(self.origin.shape)}: {self.slice.name} "
                f"{list(self.slice.shape)} from element {self.offset} on {self.endpoint}")


class VarsDistributed:
    """All parts of all variables; vtype is Param, RemotePrefetch (by rows) or Optimizer (a state).

    ``state_name(state, shard, distribution)`` gives the name of a state's part.
    """

    def __init__(self, distribution: Distribution, state_name: Callable[..., str]) -> None:
        self._distribution, self._state_name = distribution, state_name

    @functools.cached_property
    def distributed_vars(self) -> list[VarDistributed]:
        """The parts, parameter by parameter, each followed by its states."""
        made = self._distribution
        return [part for placement, vtype in ((made.placement, "Param"), (made.row_placement, "RemotePrefetch"))
                for shard in placement.shards for part in self._parts(shard, vtype)]

    def _parts(self, shard, vtype):
        """The part of a parameter, then those of its states."""
        yield self._part(shard.variable, shard.name, shard, vtype)
        for _, state in self._distribution.states_of(shard.variable):
            yield self._part(state, self._state_name(state, shard, self._distribution), shard, "Optimizer")

    def _part(self, name, part, shard, vtype):
        var = self._distribution.origin.global_block()._var_recursive(name)
        origin = VarStruct(name, tuple(var.shape), var.dtype, var.type, var.lod_level, var.persistable)
        whole = self._distribution.origin.global_block()._var_recursive(shard.variable)
        is_cut = shard.name != shard.variable and tuple(var.shape) == tuple(whole.shape)
        shape = tuple(shard.shape) if is_cut else tuple(var.shape)
        return VarDistributed(origin, origin._replace(name=part, shape=shape), is_cut, shard.block if is_cut else 0,
                              shard.offset if is_cut else 0, vtype, self._distribution.endpoints[shard.server])

    def get_distributed_var_by_slice(self, var_name: str) -> VarDistributed | None:
        """The part of this name, or None."""
        return next((one for one in self.distributed_vars if one.slice.name == var_name), None)

    def get_distributed_var_by_origin_and_ep(self, origin_var_name: str, endpoint: str) -> VarDistributed | None:
        """The part of a variable on one server, or None."""
        return next((one for one in self.get_distributed_vars_by_ep(endpoint) if one.origin.name == origin_var_name),
                    None)

    def get_distributed_vars_by_vtypes(self, vtypes: Collection[str], groupby: bool = False) -> Any:
        """The parts of these kinds; with ``groupby`` {variable: its parts}."""
        found = [one for one in self.distributed_vars if one.vtype in vtypes]
        if not groupby:
            return found
        groups = {}
        for one in found:
            groups.setdefault(one.origin.name, []).append(one)
        return groups

    def get_distributed_vars_by_ep(self, endpoint: str, vtype: str | None = None) -> list[VarDistributed]:
        """The parts on one server, of one kind or of all."""
        return [one for one in self.distributed_vars if one.endpoint == endpoint and vtype in (None, one.vtype)]

    def overview(self) -> str:
        """All parts, a line each."""
        return "\n".join(map(str, self.distributed_vars))
