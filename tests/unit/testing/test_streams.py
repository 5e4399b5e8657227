"""The stand-in's streams: copies happen when waited for, addresses are shown when nothing is computed."""

import threading

import numpy as np
import pytest

from fleet_mpi.testing import HostAccess, device


def host_copy(array, stream):
    """Host memory that the stream will copy to."""
    target = np.zeros(array.shape, array.dtype)
    array.data.copy_to_host_async(target.ctypes.data, array.nbytes, stream)
    return target


def test_a_copy_happens_when_its_stream_is_waited_for():
    stream = device.cuda.Stream(non_blocking=True)
    target = host_copy(device.ones(3, "float32"), stream)
    assert not target.any()
    stream.synchronize()
    assert target.tolist() == [1, 1, 1]


def test_an_event_has_passed_at_the_second_look():
    stream, event = device.cuda.Stream(), device.cuda.Event(disable_timing=True)
    target = host_copy(device.ones(3, "float32"), stream)
    event.record(stream)
    assert not event.done and not target.any()
    assert event.done and target.all()


def test_a_stream_waits_for_an_event_of_another():
    first, second, event = device.cuda.Stream(), device.cuda.Stream(), device.cuda.Event()
    array, source = device.zeros(2, "float32"), np.array([4, 5], np.float32)
    array.data.copy_from_host_async(source.ctypes.data, array.nbytes, first)
    event.record(first)
    second.wait_event(event)
    target = host_copy(array, second)
    second.synchronize()
    assert target.tolist() == [4, 5]


def test_what_is_computed_comes_after_the_copies_to_the_device_of_its_stream():
    array, source = device.zeros(2, "float32"), np.array([4, 5], np.float32)
    array.data.copy_from_host_async(source.ctypes.data, array.nbytes, device.cuda.get_current_stream())
    source[0] = 6  # nothing has waited: the copy may still have to read it
    assert (array + 1).get().tolist() == [7, 6]


@pytest.mark.parametrize("compute", (
    lambda a: a.__iadd__(1), lambda a: a.fill(2), lambda a: a.__setitem__(0, 3), lambda a: device.copyto(a[1:], a[:2]),
    lambda a: device.add.at(a, device.asarray([0]), 1.0)))
def test_an_address_is_shown_only_when_the_stream_is_done(compute):
    array = device.ones(3, "float32")
    device.cuda.get_current_stream().synchronize()
    assert array.__cuda_array_interface__["data"] == (array.data.ptr, False)
    compute(array)
    with pytest.raises(HostAccess, match="synchronise first"):
        array.__cuda_array_interface__
    device.cuda.get_current_stream().synchronize()
    assert array.__cuda_array_interface__["shape"] == (3,)


def test_what_is_computed_elsewhere_does_not_hide_an_address():
    flat = device.zeros(8, "float32")
    event = device.cuda.Event()
    event.record()
    event.synchronize()
    flat[4:] = 1.0
    assert flat[:4].__cuda_array_interface__["shape"] == (4,)
    with pytest.raises(HostAccess):
        flat[3:5].__cuda_array_interface__


def test_every_thread_has_a_stream_of_its_own():
    found = []
    thread = threading.Thread(target=lambda: found.append(device.cuda.get_current_stream()))
    thread.start()
    thread.join()
    assert found[0] is not device.cuda.get_current_stream() is device.cuda.get_current_stream()
