"""Gradients as float16 on their way: rounded, summed wide in rank order, rounded once, widened."""

import numpy as np
import pytest

from fleet_mpi import update_rules
from fleet_mpi.collective.half import HalfAllReduce
from fleet_mpi.program.optimizers.plain import SGD
from fleet_mpi.testing import DeviceArray, device
from tests.exact.collective_networks import batches, line
from tests.exact.collective_workers import Replay, build, same, strategy, train

RATE = np.array([0.1], "float32")


def summed_as_half(arrays):
    """By the formula."""
    total = np.zeros_like(arrays[0])
    for one in arrays:
        total = total + one.astype(np.float16).astype(np.float32)
    return total.astype(np.float16).astype(np.float32)


@pytest.mark.parametrize("workers", (2, 4))
@pytest.mark.parametrize("variant", ("", "fast"))
def test_the_mean_gradient_is_rounded_twice_in_all(workers, variant, monkeypatch):
    monkeypatch.setenv("FLEET_MPI_ALLREDUCE", variant)
    job, feeds = build(line, SGD(0.1), strategy(fp16_allreduce=True), workers), batches(3, workers)
    found, _ = train(job, feeds)
    gradients, values = Replay(line, workers), {name: one.copy() for name, one in found[0].first.items()}
    for feed in feeds:
        grads = [gradients(values, one)[1] for one in feed]
        for name, value in values.items():
            update_rules.sgd(value, summed_as_half([one[name] for one in grads]), RATE)
    assert all(same(one.values(job), values) for one in found)


def test_half_the_bytes_travel():
    sent = []
    for half in (False, True):
        sizes = []
        train(build(line, SGD(0.1), strategy(fp16_allreduce=half), 2), batches(2, 2),
              watch=lambda source, target, channel, array: sizes.append((channel, len(array))))
        sent.append(sum(size for channel, size in sizes if channel in (1, 2)))
    assert sent[1] == sent[0] / 2


class Nobody:
    """An all-reduce without others: the sum is the array itself; keeps what it was given."""

    def __init__(self):
        self.given = []

    def start(self, array):
        self.given.append(array)
        return self

    def advance(self):
        return False

    def is_over(self):
        return True


def test_what_is_too_large_for_float16_becomes_infinite():
    array = np.array([1e6, 1.0], "float32")
    reduction = HalfAllReduce(Nobody()).start(array)
    reduction.advance()
    assert reduction.is_over() and array.tolist() == [np.inf, 1.0]


def test_other_types_go_as_they_are():
    inner, array = Nobody(), np.array([1 / 3, 1e9])
    HalfAllReduce(inner).start(array)
    assert inner.given[0] is array


def test_arrays_on_a_device_stay_there():
    array = device.asarray(np.array([1 / 3, 1.0], "float32"))
    inner = Nobody()
    HalfAllReduce(inner).start(array).advance()
    assert isinstance(inner.given[0], DeviceArray) and inner.given[0].dtype == np.float16
    assert array.get().tolist() == [np.float16(1 / 3), 1.0]


def test_buffers_are_used_again():
    inner = Nobody()
    reducer, array = HalfAllReduce(inner), np.ones(4, "float32")
    for _ in range(2):
        assert reducer.start(array).is_over()
    assert inner.given[0] is inner.given[1]
