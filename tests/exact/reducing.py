"""For the tests of all-reduces: some ranks within one process, whose all-reduces are advanced in any order."""

import random

import numpy as np

from fleet_mpi.wire.loopback import Network


def parts_of(ranks, length, dtype, seed=0):
    """One array per rank, such that every order of summation gives other bits."""
    rng = np.random.default_rng(seed)
    # Exact on every machine: integers times powers of two.
    most = 1 << {"float16": 11, "float32": 24}.get(np.dtype(dtype).name, 53)
    return [(rng.integers(-most, most, length) * 2.0 ** rng.integers(-8, 3, length)).astype(dtype)
            for _ in range(ranks)]


def in_rank_order(parts):
    """What must come out."""
    if parts[0].dtype == np.float16:
        return in_rank_order([part.astype(np.float32) for part in parts]).astype(np.float16)
    total = parts[0].copy()
    for part in parts[1:]:
        total = total + part
    return total


def reduced(reducers, given, seed=0):
    """Every rank's arrays after all were summed; ``given[rank]`` = its arrays, started at any time, in their order."""
    rng, arrays = random.Random(seed), [[array.copy() for array in own] for own in given]
    waiting = {rank: list(own) for rank, own in enumerate(arrays)}
    under_way = {rank: [] for rank in waiting}
    idle = 0
    while any(waiting.values()) or not all(one.is_over() for own in under_way.values() for one in own):
        rank = rng.randrange(len(reducers))
        happened = bool(waiting[rank]) and rng.random() < 0.5
        if happened:
            under_way[rank].append(reducers[rank].start(waiting[rank].pop(0)))
        for one in rng.sample(under_way[rank], len(under_way[rank])):
            happened = one.advance() or happened
        idle = 0 if happened else idle + 1
        assert idle < 1000 * len(reducers), "nothing goes on"
    return arrays


def network_of(make, ranks):
    """(network, [make(transport) for each rank])."""
    network = Network()
    return network, [make(network.transport(rank)) for rank in range(ranks)]
