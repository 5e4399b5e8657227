"""Staging: host arrays pass as they are, device arrays after their stream, or through pinned memory and back."""

import numpy as np
import pytest

from fleet_mpi.collective.staging import Staged, StagedAllReduce
from fleet_mpi.errors import UsageError
from fleet_mpi.testing import HostAccess, device
from tests.unit.collective.late_devices import WORKS_LATE, is_untouched


def on_device(*values):
    return device.asarray(np.array(values, np.float32)) * 1.0  # computed there: its stream is busy


def test_a_host_array_is_what_goes_over_the_wire():
    array = np.arange(3.0)
    staged = Staged(array, is_aware=False)
    assert staged.outgoing() is array and staged.incoming() is array and staged.is_ready()


def test_a_stand_in_shows_its_memory_only_once_its_stream_is_done():
    with pytest.raises(HostAccess, match="synchronise first"):
        on_device(1, 2).__cuda_array_interface__


def test_a_cuda_aware_mpi_gets_the_array_itself_once_its_stream_is_done():
    array = on_device(1, 2)
    assert Staged(array, is_aware=True).outgoing() is array
    assert array.__cuda_array_interface__["typestr"] == "<f4"


def test_other_mpis_get_pinned_host_memory_which_comes_back():
    array = on_device(1, 2)
    staged = Staged(array, is_aware=False)
    sent = staged.outgoing()
    assert type(sent) is np.ndarray and sent.tolist() == [1, 2]
    sent *= 10
    assert device.asnumpy(array).tolist() == [1, 2]
    assert device.asnumpy(staged.incoming()).tolist() == [10, 20]


def test_the_copy_is_not_ready_before_the_stream_has_come_so_far():
    staged = Staged(on_device(1, 2), is_aware=False)
    staged.on_wire[...] = 9
    staged.begin()
    seen = []
    while not staged.is_ready():
        seen.append(staged.on_wire.tolist())
    assert staged.on_wire.tolist() == [1, 2]
    assert not WORKS_LATE or seen and all(one == [9, 9] for one in seen)


@pytest.mark.parametrize("is_aware", (False, True))
def test_strided_arrays_are_refused(is_aware):
    with pytest.raises(UsageError, match="contiguous"):
        Staged(on_device(1, 2, 3, 4)[::2], is_aware)


def test_an_array_without_elements_passes():
    assert Staged(device.zeros((0, 3), "float32"), is_aware=False).outgoing().shape == (0, 3)


class Doubling:
    """An all-reduce of two ranks with the same values, over after two calls; it notes what it gets."""

    def __init__(self):
        self.started = []

    def start(self, array):
        self.started.append(array)
        if not isinstance(array, np.ndarray):
            array.__cuda_array_interface__  # as MPI would
        return Doubled(array)


class Doubled:
    def __init__(self, array):
        self.array, self.steps = array, 0

    def advance(self):
        self.steps += 1
        if self.steps == 2:
            self.array *= 2
        return self.steps <= 2

    def is_over(self):
        return self.steps >= 2

    def waits_for(self):
        return [1]


def finish(reductions):
    for _ in range(20):
        for one in reductions:
            one.advance()
            one.is_over()
    assert all(one.is_over() for one in reductions)


@pytest.mark.parametrize("is_aware", (False, True))
def test_an_all_reduce_over_arrays_on_a_device(is_aware):
    inner = Doubling()
    staging = StagedAllReduce(inner, is_aware)
    arrays = [on_device(1, 2), on_device(3)]
    reductions = [staging.start(arrays[0])]
    if WORKS_LATE:
        assert reductions[0].waits_for() == [] and not inner.started, "started before the values were there"
    reductions.append(staging.start(arrays[1]))
    while not inner.started:
        reductions[0].advance()
    assert reductions[0].waits_for() == [1]
    finish(reductions)
    assert [device.asnumpy(one).tolist() for one in arrays] == [[2, 4], [6]]
    assert [isinstance(one, np.ndarray) for one in inner.started] == [not is_aware] * 2
    assert reductions[0].waits_for() == []


def test_reductions_start_in_their_order_even_if_a_later_one_is_ready_first(monkeypatch):
    inner = Doubling()
    staging = StagedAllReduce(inner)
    first, second = on_device(1), np.array([5.0])  # a host array is ready at once
    monkeypatch.setattr(Staged, "is_ready", lambda staged: staged.array is second)
    reductions = [staging.start(first), staging.start(second)]
    reductions[1].advance()
    assert not inner.started
    monkeypatch.undo()
    finish(reductions)
    assert inner.started[1] is second and len(inner.started) == 2


def test_nobody_waits_for_the_copy_back_and_what_is_computed_next_follows_it():
    inner, array = Doubling(), on_device(1, 2)
    reduction = StagedAllReduce(inner).start(array)
    while not reduction.has_landed:
        reduction.advance()
    assert reduction.is_over() and is_untouched(reduction.staged.event)
    assert device.asnumpy(array + 0).tolist() == [2, 4]


def test_a_copy_back_holds_up_nothing_before_the_sum_is_asked_for():
    array = on_device(1, 2)
    reduction = StagedAllReduce(Doubling()).start(array)
    while not reduction.has_landed:
        reduction.advance()
    device.zeros(1, "float32")
    assert is_untouched(reduction.staged.event)


def test_pinned_memory_is_used_again_once_it_has_landed():
    inner = Doubling()
    staging = StagedAllReduce(inner)
    for _ in range(3):
        finish([staging.start(on_device(1, 2)), staging.start(on_device(3, 4))])
    assert len({one.ctypes.data for one in inner.started}) == 2


def test_host_arrays_pass_through_untouched():
    inner = Doubling()
    array = np.array([1.0, 2.0])
    finish([StagedAllReduce(inner).start(array)])
    assert inner.started[0] is array and array.tolist() == [2, 4]
