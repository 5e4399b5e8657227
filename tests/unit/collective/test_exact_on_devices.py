"""Sums in rank order on devices: the bits of the host's exact sums, whatever the lengths, types and wires."""

import threading

import numpy as np
import pytest

from fleet_mpi.collective import exact_on_devices
from fleet_mpi.collective.exact import add_in_order
from fleet_mpi.collective.exact_on_devices import DeviceExactAllReduce
from fleet_mpi.testing import device
from fleet_mpi.wire.loopback import Loopback, Network
from tests.unit.collective.late_devices import is_untouched

LENGTHS = (1, 2, 3, 1000, 7)


def values(rank, length, dtype):
    """Numbers whose sum depends on the order in which they are added."""
    random = np.random.default_rng(100 * rank + length)
    return (random.standard_normal(length) * 10.0 ** random.integers(-3, 4, length)).astype(dtype)


def exact(ranks, length, dtype):
    """What the host makes of them."""
    parts = [values(rank, length, dtype) for rank in range(ranks)]
    out = np.empty_like(parts[0])
    add_in_order(parts, out)
    return out


class Aware(Loopback):
    """A network that takes device memory as a CUDA-aware MPI does: what is over has been read or written."""

    def post_send(self, peer, channel, array):
        sent = super().post_send(peer, channel, array)
        device.cuda.get_current_stream().synchronize()
        return sent

    def post_receive(self, peer, channel, array):
        return AwareReceiving(super().post_receive(peer, channel, array))


class AwareReceiving:
    def __init__(self, inner):
        self.inner = inner

    def done(self):
        device.cuda.get_current_stream().synchronize()
        return self.inner.done()


def made(ranks, is_aware):
    network = Network()
    return [DeviceExactAllReduce((Aware if is_aware else Loopback)(network, rank), range(ranks), device, is_aware)
            for rank in range(ranks)]


def finish(reductions):
    for _ in range(200):
        for one in reductions:
            one.advance()
        if all(one.is_over() for one in reductions):
            return
    raise AssertionError([one.waits_for() for one in reductions])


@pytest.mark.parametrize("is_aware", (False, True))
@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64, np.int64))
@pytest.mark.parametrize("ranks", (2, 3, 5))
def test_sums_have_the_bits_of_the_host(ranks, dtype, is_aware):
    reducers = made(ranks, is_aware)
    for _ in range(2):  # buffers are used again
        arrays = [[device.asarray(values(rank, length, dtype)) for length in LENGTHS] for rank in range(ranks)]
        finish([reducer.start(one) for reducer, some in zip(reducers, arrays) for one in some])
        for some in arrays:
            for length, one in zip(LENGTHS, some):
                assert device.asnumpy(one).tobytes() == exact(ranks, length, dtype).tobytes()


@pytest.mark.parametrize("is_aware", (False, True))
def test_long_arrays_are_cut_and_blocks_stay_in_order(is_aware, monkeypatch):
    monkeypatch.setattr(exact_on_devices, "LARGEST", 400)
    reducers = made(3, is_aware)
    arrays = [device.asarray(values(rank, 1000, np.float32)) for rank in range(3)]
    finish([reducer.start(one) for reducer, one in zip(reducers, arrays)])
    assert all(device.asnumpy(one).tobytes() == exact(3, 1000, np.float32).tobytes() for one in arrays)


def test_no_block_overtakes_the_one_before_it_though_its_device_is_done_first():
    reducers = made(2, False)
    arrays = [[device.asarray(values(rank, 10, np.float32)) for _ in range(2)] for rank in range(2)]
    reductions = [[reducer.start(one) for one in some] for reducer, some in zip(reducers, arrays)]
    (first,), (second,) = (one.blocks for one in reductions[0])
    first.whole.is_ready = lambda: False
    for _ in range(20):
        reductions[0][1].advance()
    assert first.taken == second.taken == 0
    del first.whole.is_ready
    finish([one for some in reductions for one in some])
    assert all(device.asnumpy(one).tobytes() == exact(2, 10, np.float32).tobytes() for some in arrays for one in some)


def test_it_waits_for_those_who_have_not_come():
    reducers = made(3, False)
    arrays = [device.asarray(values(rank, 9, np.float32)) for rank in range(3)]
    first = reducers[0].start(arrays[0])
    assert first.waits_for() == []  # only its own device
    second = reducers[1].start(arrays[1])
    for _ in range(10):
        first.advance(), second.advance()
    assert first.waits_for() == [2] and second.waits_for() == [2] and not first.is_over()
    finish([first, second, reducers[2].start(arrays[2])])
    assert first.waits_for() == []


def test_nobody_waits_for_the_last_copy_and_what_is_computed_next_follows_it():
    reducers = made(2, False)
    arrays = [device.asarray(values(rank, 10, np.float32)) for rank in range(2)]
    reductions = [reducer.start(one) for reducer, one in zip(reducers, arrays)]
    finish(reductions)
    assert all(is_untouched(one.blocks[0].whole.event) for one in reductions)
    assert all(device.asnumpy(one + 0).tobytes() == exact(2, 10, np.float32).tobytes() for one in arrays)


def test_buffers_are_as_many_as_arrays_under_way():
    reducers = made(2, False)
    for _ in range(3):
        finish([reducer.start(device.asarray(values(0, 10, np.float32))) for reducer in reducers for _ in range(2)])
    assert [len(some) for some in reducers[0].unused.values()] == [2]


def test_an_array_without_elements_is_its_own_sum():
    finish([reducer.start(device.zeros(0, "float32")) for reducer in made(2, False)])


def test_every_rank_in_a_thread_of_its_own():
    reducers, found = made(4, False), {}

    def run(rank):
        array = device.asarray(values(rank, 5000, np.float32)) * 1.0  # computed: the stream is busy
        reduction = reducers[rank].start(array)
        while not reduction.is_over():
            reduction.advance()
        found[rank] = device.asnumpy(array)
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [found[rank].tobytes() for rank in range(4)] == [exact(4, 5000, np.float32).tobytes()] * 4
