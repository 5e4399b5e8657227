"""Sums in shared memory: the bits of messages, for those who can share; nobody waits in silence, nothing is left
behind."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.collective import shared_memory
from fleet_mpi.collective.exact import ExactAllReduce
from fleet_mpi.collective.group import Group
from fleet_mpi.collective.half import HalfAllReduce
from fleet_mpi.collective.shared_memory import SharedAllReduce
from fleet_mpi.wire import segments
from fleet_mpi.wire.loopback import Network
from tests.exact.reducing import in_rank_order, parts_of

pytestmark = pytest.mark.skipif(segments.platform.machine() != "x86_64", reason="memory is shared on x86 only")


def groups(size, lanes=1):
    networks = [Network() for _ in range(lanes)]
    made = [Group(index, [network.transport(index) for network in networks], size) for index in range(size)]
    for one in made:
        one.shares_memory = True
    return made


def on_every(workers, call):
    """What ``call(worker)`` returns for every worker, all at the same time."""
    with ThreadPoolExecutor(len(workers)) as threads:
        return list(threads.map(call, workers))


def segments_of(size, nbytes, lanes=1):
    return on_every(groups(size, lanes), lambda group: shared_memory.attach(group, nbytes))


def reducers_in(found):
    return [SharedAllReduce(rows, 0, None) for rows in found]


def finish(reductions):
    for _ in range(100):
        for one in reductions:
            one.advance()
    assert all(one.is_over() for one in reductions)


@pytest.mark.parametrize("size", (2, 3, 5))
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_sums_have_the_bits_of_rank_order(size, dtype):
    found = segments_of(size, 64000)
    reducers = reducers_in(found)
    for start, length, seed in ((0, 1, 1), (64, 63, 2), (640, 5000, 3), (640, 5000, 4)):
        parts = parts_of(size, length, dtype, seed)
        lines = [rows.mine[start:].view(dtype)[:length] for rows in found]
        for line, part in zip(lines, parts):
            line[...] = part
        finish([reducer.start(line) for reducer, line in zip(reducers, lines)])
        assert all(line.tobytes() == in_rank_order(parts).tobytes() for line in lines)


def test_a_sum_waits_for_the_last_worker_and_names_it():
    found = segments_of(3, 4000)
    for rows in found:
        rows.mine[...] = 0
        rows.mine.view(np.float32)[...] = 1
    reducers = reducers_in(found)
    early = [reducers[rank].start(found[rank].mine.view(np.float32)) for rank in (0, 2)]
    assert not any(one.advance() for one in early)
    assert not early[0].is_over() and early[0].waits_for() == [1]
    assert (found[0].mine.view(np.float32) == 1).all()
    late = reducers[1].start(found[1].mine.view(np.float32))
    assert early[0].advance() and early[1].advance()
    assert early[0].waits_for() == [1] and not early[0].is_over()
    late.advance()
    assert early[0].is_over() and late.is_over() and late.waits_for() == []
    assert all((rows.mine.view(np.float32) == 3).all() for rows in found)


def test_lanes_do_not_wait_for_each_other():
    found = segments_of(2, 4096, lanes=2)
    lines = [rows.mine.view(np.float32) for rows in found]
    first, second = ([SharedAllReduce(rows, lane, None) for rows in found] for lane in range(2))
    waiting = first[0].start(lines[0][:10])
    finish([reducer.start(line[100:]) for reducer, line in zip(second, lines)])
    assert not waiting.is_over()


def test_what_lies_elsewhere_or_is_of_another_type_is_sent():
    class Messages:
        def start(self, array):
            return "sent"
    rows, _ = segments_of(2, 4096)
    reducer = SharedAllReduce(rows, 0, Messages())
    assert reducer.start(np.zeros(10, np.float32)) == "sent"
    assert reducer.start(rows.mine.view(np.float16)) == "sent"
    assert reducer.start(rows.rows[1].view(np.float32)) == "sent"
    assert reducer.start(rows.mine.view(np.float32)) != "sent"


def open_files():
    return [name for name in map(os.path.realpath, map("/proc/self/fd/{}".format, os.listdir("/proc/self/fd")))
            if "memfd:fleet_mpi" in name]


def test_nothing_is_left_open_or_in_a_folder():
    before = os.listdir("/dev/shm")
    assert None not in segments_of(2, 4096)
    assert open_files() == [] and not [name for name in set(os.listdir("/dev/shm")) - set(before) if "fleet" in name]


@pytest.mark.parametrize("call", ("memfd_create", "posix_fallocate"))
def test_without_memory_all_use_messages(monkeypatch, call):
    def no_room(*arguments):
        raise OSError(errno.ENOSPC, "no space left")
    monkeypatch.setattr(os, call, no_room)
    assert segments_of(2, 4096) == [None, None]
    assert open_files() == []


def test_where_one_cannot_enter_nobody_does(monkeypatch):
    """As in two containers of one machine: the others do not see the process."""
    monkeypatch.setattr(segments, "_open", lambda *arguments: None)
    assert segments_of(3, 4096) == [None, None, None]
    assert open_files() == []


def test_the_memory_of_another_job_is_not_entered():
    file, memory = segments._make(8192)
    memory[:8] = np.int64(5).tobytes()
    try:
        assert segments._open(file, 5, os.getpid(), 8192) is not None
        assert segments._open(file, 6, os.getpid(), 8192) is None
        assert segments._open(file, 5, os.getpid(), 4096) is None
        assert segments._open(file + 1000, 5, os.getpid(), 8192) is None
    finally:
        os.close(file)


def chosen(change=lambda group: None, wrap=lambda reducer: reducer):
    made = groups(2)
    for group in made:
        change(group)
    return on_every(made, lambda group: shared_memory.shared_reducers(
        [wrap(ExactAllReduce(lane, group.ranks)) for lane in group.lanes], group, 4096, np))


def test_workers_of_one_machine_share():
    for (reducer,), memory in chosen():
        assert type(reducer) is SharedAllReduce and type(reducer.messages) is ExactAllReduce
        assert len(memory) == 4096


@pytest.mark.parametrize("change, wrap", [
    (lambda group: setattr(group, "hosts", ["a", "b"]), lambda reducer: reducer),
    (lambda group: setattr(group, "shares_memory", False), lambda reducer: reducer),
    (lambda group: None, HalfAllReduce)])
def test_others_use_messages(change, wrap):
    for (reducer,), memory in chosen(change, wrap):
        assert type(reducer) is not SharedAllReduce and memory is None


def test_a_setting_turns_it_off():
    with settings.override(FLEET_MPI_SHARED_MEMORY=False):
        assert [memory for _, memory in chosen()] == [None, None]


@pytest.mark.parametrize("unwilling", (0, 1))
def test_where_one_does_not_want_to_nobody_does(unwilling):
    found = on_every(groups(2), lambda group: shared_memory.attach(group, 4096, group.index != unwilling))
    assert found == [None, None]
    assert open_files() == []


def test_other_processors_use_messages(monkeypatch):
    monkeypatch.setattr(segments.platform, "machine", lambda: "aarch64")
    assert segments_of(2, 4096) == [None, None]
