"""The NCCL backend over an emulation of cupy's calls: what is handed over, in which order, and the sums.

No GPU and no NCCL here: the emulation follows cupy's documentation, and has the last word only until hardware has.
"""

import ctypes
import itertools
import sys
import types

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.collective import nccl_backend
from fleet_mpi.collective.group import Group as RealGroup
from fleet_mpi.collective.nccl_backend import NcclAllReduce
from fleet_mpi.errors import EnvironmentProblem, PeerLost, Stalled, UsageError
from fleet_mpi.testing import device

NUMBERS = {"NCCL_INT32": 2, "NCCL_INT64": 4, "NCCL_FLOAT16": 6, "NCCL_FLOAT32": 7, "NCCL_FLOAT64": 8}
DTYPES = {2: np.int32, 4: np.int64, 6: np.float16, 7: np.float32, 8: np.float64}


class World:
    """Emulated NCCL of all ranks: a call is over when every rank has made it."""

    def __init__(self, kind=bytes):
        self.calls, self.ids, self.failure, self.kind, self.aborted = {}, [], None, kind, []

    def draw(self):
        """As cupy 14 has an id, or as those before: a tuple of signed chars."""
        numbers = bytes((7 * number + len(self.ids)) % 256 for number in range(128))
        self.ids.append(numbers if self.kind is bytes else tuple(number - 128 for number in numbers))
        return self.ids[-1]

    def call(self, communicator, turn, address, count, kind):
        """A rank's call number ``turn`` on its communicator; the last one adds up."""
        made = self.calls.setdefault((communicator.unique_id, turn), {})
        made[communicator.rank] = memory_at(address, count, kind)
        if len(made) == communicator.size:
            total = sum(array.astype(np.float64) for array in made.values())
            for array in made.values():
                array[...] = total
        return lambda: len(made) == communicator.size


def memory_at(address, count, kind):
    dtype = np.dtype(DTYPES[kind])
    return np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(address), dtype)


class Cupy:
    """The part of cupy that the backend uses, as one rank has it; ``log`` tells the order of its calls."""

    def __init__(self, world):
        self.log, self.streams = [], {}
        log, streams, numbers = self.log, self.streams, itertools.count(1)

        class Stream:
            def __init__(self, non_blocking=False):
                self.ptr, self.work, self.non_blocking = 1000 + next(numbers), [], non_blocking
                streams[self.ptr] = self

            def wait_event(self, event):
                log.append(("wait", self.ptr, event.stream.ptr))

            def synchronize(self):
                log.append(("synchronize", self.ptr))

        class Event:
            def __init__(self, block=False, disable_timing=False, interprocess=False):
                assert disable_timing

            def record(self, stream):
                self.stream, self.work = stream, list(stream.work)

            @property
            def done(self):
                return all(is_over() for is_over in self.work)

        class NcclCommunicator:
            def __init__(self, size, unique_id, rank):
                assert isinstance(unique_id, world.kind) and len(unique_id) == 128
                self.size, self.unique_id, self.rank, self.turns = size, unique_id, rank, itertools.count()

            def allReduce(self, source, target, count, kind, op, stream):
                assert source == target and op == 0
                log.append(("allReduce", stream))
                streams[stream].work.append(world.call(self, next(self.turns), source, count, kind))

            def check_async_error(self):
                if world.failure:
                    raise RuntimeError(world.failure)

            def abort(self):
                world.aborted.append(self.rank)

        current = Stream()
        nccl = types.SimpleNamespace(available=True, get_unique_id=world.draw, NcclCommunicator=NcclCommunicator,
                                     NCCL_SUM=0, **NUMBERS)
        self.ones = device.ones
        self.cuda = types.SimpleNamespace(Stream=Stream, Event=Event, nccl=nccl, get_current_stream=lambda: current)


class Group:
    """Ranks one after the other: what worker 0 sends is there when the others ask."""

    def __init__(self, index, size, sent, lanes=1):
        self.index, self.size, self.lanes, self.sent, self.at_failure = index, size, [None] * lanes, sent, []
        self.left_behind = []

    def gather_values(self, value):
        return [value]

    def broadcast(self, arrays):
        for array in arrays:
            if self.index == 0:
                self.sent.append([array.copy() for _ in range(1, self.size)])
            else:
                array[...] = next(one for one in self.sent if one).pop()


def ranks(size, world, lanes=1):
    """[(cupy, reducers)] of all ranks."""
    sent, made = [], []
    for index in range(size):
        cupy = Cupy(world)
        if index:  # every rank takes the first of each lane's copies
            waiting = [[copies.pop()] for copies in sent]
        made.append((cupy, NcclAllReduce.of(Group(index, size, sent if index == 0 else waiting, lanes), cupy)))
    return made


def on_device(*values, dtype=np.float32):
    return device.asarray(np.array(values, dtype))


@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64, np.int64))
def test_arrays_become_the_sum_over_all_ranks(dtype):
    made = ranks(3, World())
    arrays = [on_device(index, 10 + index, dtype=dtype) for index in range(3)]
    reductions = [reducers[0].start(array) for (_, reducers), array in zip(made, arrays)]
    assert all(one.is_over() for one in reductions)
    assert [device.asnumpy(array).tolist() for array in arrays] == [[3, 33]] * 3


def test_the_host_waits_for_no_sum_and_what_it_launches_next_follows_it():
    (cupy, (reducer,)), _ = ranks(2, World())
    reduction = reducer.start(on_device(1))
    cupy.log.clear()
    assert not reduction.advance() and not cupy.log, "what is still computed would be held up"
    assert reduction.is_over() and reduction.is_over() and reduction.waits_for() == []
    assert cupy.log == [("wait", cupy.cuda.get_current_stream().ptr, reducer.stream.ptr)]


def test_a_sum_that_the_host_went_on_from_is_over_when_every_rank_has_come():
    (_, (reducer,)), (_, (other,)) = ranks(2, World())
    assert reducer.start(on_device(1)).is_over()
    first, = reducer.left_behind
    assert not first.advance() and not first.is_over() and first.waits_for() == [1]
    other.start(on_device(2))
    assert first.advance() and first.is_over() and not first.advance()


def test_the_stream_of_the_sums_waits_for_what_was_computed_and_is_another_one():
    (cupy, (reducer,)), = ranks(1, World())
    reducer.start(on_device(1))
    computing = cupy.cuda.get_current_stream().ptr
    assert cupy.log == [("wait", reducer.stream.ptr, computing), ("allReduce", reducer.stream.ptr)]
    assert reducer.stream.ptr != computing and reducer.stream.non_blocking


@pytest.mark.parametrize("kind", (bytes, tuple))
def test_every_lane_has_a_communicator_and_a_stream_of_its_own(kind):
    world = World(kind)
    made = ranks(2, world, lanes=2)
    assert len(set(world.ids)) == 2
    for number in range(2):
        assert {reducers[number].communicator.unique_id for _, reducers in made} == {world.ids[number]}
    assert len({reducer.stream.ptr for reducer in made[0][1]}) == 2


def test_a_lost_peer_is_told():
    world = World()
    reduction = ranks(2, world)[0][1][0].start(on_device(1, 2))
    world.failure = "NCCL_ERROR_SYSTEM_ERROR: unhandled system error"
    with pytest.raises(PeerLost, match="worker 0: NCCL gave up an all-reduce of 8 bytes: NCCL_ERROR_SYSTEM_ERROR"):
        reduction.advance()


def test_a_communicator_with_a_lost_peer_is_given_up_once_and_for_all():
    world = World()
    reducer, = ranks(2, world)[0][1]
    reduction = reducer.start(on_device(1, 2))
    world.failure = "a peer is gone"
    with pytest.raises(PeerLost):
        reduction.advance()
    reducer.abort()  # of whoever else notices
    assert world.aborted == [0]
    with pytest.raises(PeerLost, match="worker 0: NCCL was given up after a failure"):
        reducer.start(on_device(1, 2))


def test_a_wait_without_end_gives_the_communicator_up():
    world = World()
    cupy = Cupy(world)
    group = RealGroup(0, [None], 2, "worker {}".format)
    group.broadcast, group.gather_values = (lambda arrays: None), (lambda value: [value])
    reducer, = NcclAllReduce.of(group, cupy)
    group.finish([reducer.start(on_device(1))], "the gradients of step 0")
    with settings.override(FLAGS_rpc_deadline=50), pytest.raises(Stalled, match="for worker 1"):
        group.catch_up("the gradients of step 0")
    assert world.aborted == [0] and not group.at_failure and not group.left_behind


def test_one_rank_for_itself_tries_whether_nccl_works():
    world = World()
    assert nccl_backend.why_not(Cupy(world)) == ""
    assert len(world.calls) == 1 and world.aborted == [0]
    world.failure = "the driver is too old"
    assert "the driver is too old" in nccl_backend.why_not(Cupy(world))
    assert "cupy finds no NCCL (pip install nvidia-nccl-cu12" in nccl_backend.why_not(device)


def test_an_nccl_that_does_not_begin_is_told():
    world = World(kind=list)  # an id that it does not take
    with pytest.raises(EnvironmentProblem, match="worker 0: NCCL did not begin"):
        ranks(1, world)


def test_gradients_on_the_host_are_refused():
    with pytest.raises(UsageError, match="CUDAPlace"):
        ranks(1, World())[0][1][0].start(np.ones(3))


def test_types_that_nccl_does_not_add_are_refused():
    with pytest.raises(UsageError, match="got bool"):
        ranks(1, World())[0][1][0].start(device.zeros(3, "bool"))


def test_the_module_is_imported_where_cupy_does_not_show_it(monkeypatch):
    cupy = Cupy(World())
    nccl, cupy.__name__ = cupy.cuda.nccl, "cupy_of_this_test"
    del cupy.cuda.nccl
    for name, module in (("", cupy), (".cuda", cupy.cuda), (".cuda.nccl", nccl)):
        monkeypatch.setitem(sys.modules, cupy.__name__ + name, module)
    assert NcclAllReduce.of(Group(0, 1, []), cupy)[0].nccl is nccl


@pytest.mark.parametrize("nccl", (None, types.SimpleNamespace(available=False)))
def test_cupy_without_nccl_is_an_error_that_says_what_to_install(nccl):
    xp = types.SimpleNamespace(cuda=types.SimpleNamespace(nccl=nccl))
    with pytest.raises(EnvironmentProblem, match="nvidia-nccl-cu12"):
        NcclAllReduce.of(Group(0, 1, []), xp)
