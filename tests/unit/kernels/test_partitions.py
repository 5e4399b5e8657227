"""Partitions: every id has one server, whatever the other ids are, and servers have like shares of any ids."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference import partitions

EXTREMES = np.array([-2 ** 63, -1, 0, 1, 2 ** 63 - 1, 10 ** 18])


def split_case(count, servers):
    def make(rng):
        ids = np.concatenate([EXTREMES, rng.integers(-2 ** 63, 2 ** 63 - 1, count)])[:count]
        return ids, np.zeros(servers, np.int64), np.empty_like(ids), np.empty_like(ids)
    return make


KERNEL_CASES = {"split_by_partition": [split_case(*case) for case in ((0, 2), (1, 1), (6, 3), (500, 4), (300, 1024))]}


def split(ids, servers):
    ids = np.asarray(ids, np.int64)
    counts, local, order = np.empty(servers, np.int64), np.empty_like(ids), np.empty_like(ids)
    partitions.split_by_partition(ids, counts, local, order)
    return counts, local, order


def by_python(one):
    """The partition of an id in whole numbers of Python."""
    hashed = one % 2 ** 64
    hashed = (hashed ^ hashed >> 30) * 0xBF58476D1CE4E5B9 % 2 ** 64
    hashed = (hashed ^ hashed >> 27) * 0x94D049BB133111EB % 2 ** 64
    return (hashed ^ hashed >> 31) >> 54


def test_partitions_are_those_of_the_hash():
    assert partitions.partitions_of(EXTREMES).tolist() == [by_python(one) for one in EXTREMES.tolist()]


@pytest.mark.parametrize("ids", (np.arange(40000), np.arange(40000) << 40, -5 * np.arange(40000)))
def test_servers_have_like_shares_of_regular_ids(ids):
    for servers in (2, 3, 7):
        counts, local, order = split(ids, servers)
        assert counts.sum() == len(ids) and abs(counts / len(ids) * servers - 1).max() < 0.1
        np.testing.assert_array_equal(ids[order], local)


def test_what_comes_from_one_server_keeps_its_order():
    _, _, order = split(np.tile(EXTREMES, 3), 3)
    first = {one: np.flatnonzero(EXTREMES[order % 6] == one) for one in EXTREMES.tolist()}
    assert all((np.diff(order[places]) > 0).all() for places in first.values())
