"""Inboxes lie before address space that takes no memory, where there is any."""

import resource

import numpy as np
import pytest

from fleet_mpi.wire import inboxes
from fleet_mpi.wire.inboxes import Inboxes

SPACE = 1 << 30


def resident():
    """Bytes of memory that this process has."""
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize()


def end(array):
    """The address behind an array."""
    return array.__array_interface__["data"][0] + array.nbytes


def test_what_lies_behind_an_inbox_may_be_written_and_takes_no_memory_before():
    made, before = Inboxes(SPACE), resident()
    arrays = [made.take(1000) for _ in range(10)]
    assert resident() - before < SPACE // 8
    behind = made.line[-1:].__array_interface__["data"][0] - end(arrays[-1])
    assert behind >= SPACE // 2 - 10 * 1024
    assert all(array.__array_interface__["data"][0] % 64 == 0 and len(array) == 1000 for array in arrays)
    made.line[-1] = 7


def test_inboxes_do_not_overlap_and_there_is_always_room_behind():
    made = Inboxes(1 << 16)
    arrays = [made.take(5000) for _ in range(20)]
    for number, array in enumerate(arrays):
        array[...] = number
    assert all((array == number).all() for number, array in enumerate(arrays))


@pytest.mark.parametrize("limit", ("rlimit", "overcommit", "mmap"))
def test_where_address_space_counts_inboxes_are_arrays_like_any_other(monkeypatch, limit):
    if limit == "rlimit":
        monkeypatch.setattr(resource, "getrlimit", lambda which: (1 << 40, 1 << 40))
    elif limit == "overcommit":
        monkeypatch.setattr(inboxes, "_counts_promises", lambda: True)
    else:
        monkeypatch.setattr(inboxes.mmap, "mmap", lambda *_, **__: (_ for _ in ()).throw(OSError("no room")))
    found = Inboxes(SPACE).take(100)
    found[...] = 1
    assert found.base is None or np.shape(found.base) != (SPACE,)
    assert len(found) == 100
