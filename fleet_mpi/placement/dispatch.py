"""Which server gets a block: the three methods, and the base class for one's own.

Knows servers as a list of endpoints, which are labels, and blocks by name and shape.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fleet_mpi.errors import NotBuilt, UsageError, nearest
from fleet_mpi.placement.hashing import fnv1a, hash_all
from fleet_mpi.placement.shard import Variable
from fleet_mpi.placement.variables import itemsize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeGuard

    from fleet_mpi.placement.split import Columns

# Loading the compiled loop takes longer than balancing this many blocks in Python (tens of ms).
FEW = 20_000


class AssignsAtOnce(Protocol):
    """A split method that takes all blocks of a placement together."""

    def assign(self, names: Sequence[str], sizes_bytes: np.ndarray) -> np.ndarray:
        """The server of every block, in the order of dispatch."""


class PSDispatcher:
    """Base of the methods: a subclass says in ``dispatch`` which endpoint each of some blocks goes to.

    ``place`` makes an instance with the endpoints, then calls ``reset`` once and ``dispatch`` with the blocks of one
    variable after the other. A subclass that can do all blocks at once also defines ``assign``.
    """

    def __init__(self, pserver_endpoints: Iterable[str]) -> None:
        self._eps = list(pserver_endpoints)
        if not self._eps:
            raise UsageError(f"{type(self).__name__}: expected the endpoints of one server or more, got none")
        self._step = 0

    @property
    def eps(self) -> list[str]:
        """The endpoints, in the order of the servers."""
        return self._eps

    def reset(self) -> None:
        """Forget what was dispatched before."""
        self._step = 0

    def dispatch(self, varlist: Sequence[Variable]) -> Sequence[str]:
        """The endpoint for each of these blocks (anything with ``name``, and ``shape`` where bytes count)."""
        raise NotBuilt(f"split method {type(self).__name__}: define dispatch(varlist), which returns an endpoint per "
                       f"block")


class RoundRobin(PSDispatcher):
    """One block each, in the order of the servers, and round again; a variable goes on where the one before ended."""

    def dispatch(self, varlist: Sequence[Variable]) -> list[str]:
        """The next endpoints in turn; the next call goes on from there."""
        chosen = [self._eps[(self._step + i) % len(self._eps)] for i in range(len(varlist))]
        self._step = (self._step + len(varlist)) % len(self._eps)
        return chosen

    def assign(self, names: Sequence[str], sizes_bytes: np.ndarray) -> np.ndarray:
        """The server of every block of a placement, in the order of dispatch."""
        return np.arange(len(names)) % len(self._eps)


class HashName(PSDispatcher):
    """By a stable hash of the block's name: where a block lives does not depend on what else there is."""

    def dispatch(self, varlist: Sequence[Variable]) -> list[str]:
        """The endpoint that each block's name stands for."""
        return [self._eps[fnv1a(var.name) % len(self._eps)] for var in varlist]

    def assign(self, names: Sequence[str], sizes_bytes: np.ndarray) -> np.ndarray:
        """The server of every block of a placement."""
        return (hash_all(names) % np.uint64(len(self._eps))).astype(np.int64)


class Balanced(PSDispatcher):
    """By bytes: the largest block first, each to the server that has least so far (the first of equals)."""

    def __init__(self, pserver_endpoints: Iterable[str]) -> None:
        super().__init__(pserver_endpoints)
        self.reset()

    def reset(self) -> None:
        """Forget what the servers have."""
        self._loads = np.zeros(len(self._eps), np.int64)

    def dispatch(self, varlist: Sequence[Variable]) -> list[str]:
        """The endpoint for each block; what the calls before have given is counted in."""
        chosen = self.assign([var.name for var in varlist], np.array([_bytes_of(var) for var in varlist], np.int64))
        return [self._eps[server] for server in chosen]

    def assign(self, names: Sequence[str], sizes_bytes: np.ndarray) -> np.ndarray:
        """The server of every block of a placement."""
        balance = compiled_balance() if len(names) > FEW else balance_many
        # Stable, so equal blocks are taken in the order they came in: the same on every rank.
        return balance(np.argsort(-sizes_bytes, kind="stable"), sizes_bytes, self._loads)


def balance_many(order: np.ndarray, sizes: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """Give the blocks in this order to the server that has least; adds to ``loads``. The form that numba compiles."""
    heap = [(loads[server], server) for server in range(loads.size)]
    heapq.heapify(heap)
    servers = np.empty(sizes.size, np.int64)
    for block in order:
        load, server = heap[0]
        servers[block] = server
        loads[server] = load + sizes[block]
        heapq.heapreplace(heap, (loads[server], server))
    return servers


@functools.cache
def compiled_balance() -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """``balance_many``, compiled: numba is loaded by the first call, not by importing this module."""
    from fleet_mpi.kernels.numba.compiling import compiled

    return compiled(balance_many)


def _bytes_of(var: Variable) -> int:
    shape = getattr(var, "shape", None)
    if shape is None:
        raise UsageError(f"Balanced.dispatch: {var!r} has no shape, so its bytes cannot be counted; "
                         "RoundRobin and HashName need names only")
    return math.prod(shape) * itemsize(getattr(var, "dtype", "float32"))


# A split method: its name, its class, or an instance of that; None is RoundRobin.
Method = str | type[PSDispatcher] | PSDispatcher | None
METHODS: dict[str, type[PSDispatcher]] = {method.__name__: method for method in (RoundRobin, HashName, Balanced)}


def dispatcher(method: Method, endpoints: Sequence[str]) -> PSDispatcher:
    """An instance of a split method, which may be given by name, as a class or as an instance; None is RoundRobin."""
    if method is None:
        method = RoundRobin
    if isinstance(method, str):
        if method not in METHODS:
            raise UsageError(f"split method {method!r} is unknown; {nearest(method, METHODS)}")
        method = METHODS[method]
    if isinstance(method, type) and issubclass(method, PSDispatcher):
        return method(endpoints)
    if not isinstance(method, PSDispatcher):
        raise UsageError(f"split method: expected one of {', '.join(METHODS)} or a subclass of PSDispatcher, "
                         f"got {method!r}")
    if len(method.eps) != len(endpoints):
        raise UsageError(f"split method: {type(method).__name__} was made for {len(method.eps)} servers, "
                         f"there are {len(endpoints)}; give the class instead")
    return method


def servers_of(chosen: PSDispatcher, columns: Columns, order: np.ndarray, element_bytes: np.ndarray,
               variables: Sequence[Variable]) -> np.ndarray | list[int]:
    """The server of every block of a placement, in the order of dispatch: an int64 array, or a list of ints."""
    chosen.reset()
    if _assigns_at_once(chosen):
        names = [columns.names[block] for block in order.tolist()]
        return chosen.assign(names, (columns.sizes * element_bytes[columns.owners])[order])
    index = {endpoint: server for server, endpoint in enumerate(chosen.eps)}
    given = []
    for blocks in _by_variable(columns, order, variables):
        endpoints = list(chosen.dispatch(blocks))
        if len(endpoints) != len(blocks) or not index.keys() >= set(endpoints):
            raise UsageError(f"split method {type(chosen).__name__}: dispatch of the {len(blocks)} blocks of "
                             f"{blocks[0].name!r} must return as many of {chosen.eps}, got {endpoints}")
        given += [index[endpoint] for endpoint in endpoints]
    return given


def _assigns_at_once(chosen: PSDispatcher) -> TypeGuard[AssignsAtOnce]:
    """Whether ``assign`` speaks for a method: not where a subclass has a ``dispatch`` of its own."""
    return next("assign" in vars(each) for each in type(chosen).__mro__
                if "assign" in vars(each) or "dispatch" in vars(each))


def _by_variable(columns: Columns, order: np.ndarray, variables: Sequence[Variable]) -> Iterator[list[Variable]]:
    """The blocks of one variable after the other, as a method's ``dispatch`` gets them."""
    for _, blocks in itertools.groupby(order.tolist(), columns.owners.tolist().__getitem__):
        yield [_as_variable(columns, block, variables[columns.owners[block]]) for block in blocks]


def _as_variable(columns: Columns, block: int, whole: Variable) -> Variable:
    shape = whole.shape if columns.counts[block] == 1 else (int(columns.rows[block]), *whole.shape[1:])
    return Variable(columns.names[block], shape, whole.dtype)
