"""``place``: all shards of all variables on all servers, the same on every rank that asks with the same arguments."""

import functools
import itertools
import math
import operator
from types import SimpleNamespace

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.placement.dispatch import dispatcher, itemsize
from fleet_mpi.placement.shard import Shard, Variable, block_name
from fleet_mpi.placement.split import cut_all


class Placement:
    """All shards of some variables.

    Attributes:
        servers: how many there are; one may have no shard.
        variables: what was placed, in the order given.
        shards: in the order of the variables, then of their blocks.
        dispatch_order: indices into ``shards`` in the order in which the blocks were given to servers.
    """

    def __init__(self, servers, variables, shards, dispatch_order):
        self.servers = servers
        self.variables = variables
        self.shards = shards
        self.dispatch_order = dispatch_order

    def of_server(self, server):
        """The shards that a server keeps, in the order of ``shards``."""
        return self._by_server[server]

    def of_variable(self, name):
        """The shards of one variable, in order: together they are the whole of it."""
        try:
            return self._by_variable[name]
        except KeyError:
            raise UsageError(f"placement: no variable {name!r} among the {len(self.variables)} that were placed") from None

    @functools.cached_property
    def _by_server(self):
        kept = [[] for _ in range(self.servers)]
        for shard in self.shards:
            kept[shard.server].append(shard)
        return [tuple(shards) for shards in kept]

    @functools.cached_property
    def _by_variable(self):
        return {name: tuple(shards)
                for name, shards in itertools.groupby(self.shards, operator.attrgetter("variable"))}


def place(variables, servers, method="RoundRobin", slice_up=True, min_block_size=8192, seed=0):
    """Cut variables into shards and give each shard a server.

    Args:
        variables: (name, shape) or (name, shape, dtype) each, in the order of the optimizer's operators.
        servers: how many, or their endpoints.
        method: "RoundRobin", "HashName", "Balanced", a subclass of PSDispatcher, or an instance of one.
        slice_up: False keeps every variable whole.
        min_block_size: elements; a variable is cut from twice as many on.
        seed: the program's; orders the variables before they are given out when they are not cut.

    Returns:
        A Placement.
    """
    endpoints = _endpoints(servers)
    chosen = dispatcher(method, endpoints)
    min_block_size = _whole_number("min_block_size", min_block_size)
    variables = _checked(variables)
    sizes = np.fromiter((math.prod(shape) for _, shape, _ in variables), np.int64, len(variables))
    widths = np.fromiter((math.prod(shape[1:]) for _, shape, _ in variables), np.int64, len(variables))
    counts, blocks = cut_all(sizes, widths, len(endpoints) if slice_up else 1, min_block_size)
    pieces = list(_pieces(variables, widths.tolist(), sizes.tolist(), counts.tolist(), blocks.tolist()))
    order = _order(len(pieces), slice_up, seed)
    servers = _assign(chosen, [pieces[i] for i in order], variables)
    by_piece = np.empty(len(pieces), np.int64)
    by_piece[order] = servers
    shards = tuple(piece._replace(server=server) for piece, server in zip(pieces, by_piece.tolist()))
    return Placement(len(endpoints), variables, shards, tuple(order))


def _endpoints(servers):
    if isinstance(servers, (list, tuple)):
        if len(set(servers)) != len(servers) or not servers:
            raise UsageError(f"placement: expected the endpoints of one server or more, all different, got {servers!r}")
        return list(servers)
    return [f"server {index}" for index in range(_whole_number("servers", servers))]


def _whole_number(what, value):
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise UsageError(f"placement: {what} must be a whole number of at least 1, got {value!r}")
    return number


def _checked(variables):
    made = tuple(Variable(name, tuple(shape), *dtype) for name, shape, *dtype in variables)
    if len({variable.name for variable in made}) != len(made):
        seen = set()
        twice = next(name for name, _, _ in made if name in seen or seen.add(name))
        raise UsageError(f"placement: two variables are called {twice!r}; each name may be placed once")
    for name, shape, _ in made:
        if shape and min(shape) < 0:
            raise UsageError(f"placement: variable {name!r} has shape {shape}; a placed variable needs a size "
                             "in every dimension")
    return made


def _pieces(variables, widths, sizes, counts, blocks):
    """Every block as a Shard that has no server yet."""
    for (name, shape, _), width, size, count, block_size in zip(variables, widths, sizes, counts, blocks):
        if count == 1:
            yield Shard(name, 0, name, 0, size, 0, shape[0] if shape else 1, shape, -1)
        else:
            for block in range(count):
                offset = block * block_size
                taken = min(block_size, size - offset)
                rows = taken // width
                yield Shard(name, block, block_name(name, block, count), offset, taken, offset // width, rows,
                            (rows, *shape[1:]), -1)


def _order(count, slice_up, seed):
    order = list(range(count))
    if not slice_up:
        # The original's order, from a generator of our own: the script's numpy.random stays as it was.
        np.random.RandomState(seed).shuffle(order)
    return order


def _assign(chosen, pieces, variables):
    """The server of every piece, given in the order of dispatch."""
    dtypes = {variable.name: variable.dtype for variable in variables}
    sizes = np.array([piece.size * itemsize(dtypes[piece.variable]) for piece in pieces], np.int64)
    chosen.reset()
    if _assigns_at_once(type(chosen)):
        return chosen.assign([piece.name for piece in pieces], sizes)
    index = {endpoint: server for server, endpoint in enumerate(chosen.eps)}
    given = []
    for _, blocks in itertools.groupby(pieces, operator.attrgetter("variable")):
        blocks = [SimpleNamespace(name=piece.name, shape=piece.shape, dtype=dtypes[piece.variable]) for piece in blocks]
        given += chosen.dispatch(blocks)
    return [index[endpoint] for endpoint in given]


def _assigns_at_once(kind):
    """Whether ``assign`` speaks for this class: not when a subclass has a ``dispatch`` of its own below it."""
    return next(("assign" in vars(each) for each in kind.__mro__ if {"assign", "dispatch"} & set(vars(each))), False)
