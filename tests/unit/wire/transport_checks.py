"""What every transport does: bodies that two ranks run at the same time, ``check(transport, me, other)`` each.

``me`` is 0 or 1, ``other`` the peer's rank in the transport.
"""

import threading

import numpy as np
import pytest

from fleet_mpi.errors import PeerLost
from fleet_mpi.ranks.waiting import wait_until
from fleet_mpi.wire import protocol

ONE, TWO, BACK = 1, 2, 3   # channels


def as_two_ranks(check, transport_of):
    """Run a check as ranks 10 and 11, which are threads, over ``transport_of(rank)``; raise what either raised."""
    raised = []

    def rank(me):
        try:
            check(transport_of(10 + me), me, 11 - me)
        except BaseException as error:
            raised.append(error)
    threads = [threading.Thread(target=rank, args=(me,)) for me in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def message(length, seed):
    """Some bytes that nothing else has."""
    return np.random.default_rng([length, seed]).integers(0, 256, length, dtype=np.uint8)


def finish(transport, *pendings):
    """Wait for sends and receives."""
    for pending in pendings:
        wait_until(pending.done, lambda: "nothing came", transport.progress, 20)
        assert pending.done()  # again


def send(transport, peer, channel, array):
    """Send and wait."""
    finish(transport, transport.post_send(peer, channel, array))


def receive(transport, peer, channel, room):
    """What comes next, with room for so many bytes."""
    array = np.zeros(room, np.uint8)
    pending = transport.post_receive(peer, channel, array)
    finish(transport, pending)
    return array[:pending.received]


def order_is_kept_whatever_the_sizes(transport, me, other):
    """Receives posted before and after the sends meet the messages in their order."""
    sizes = [1, 70000, 0, 64, 300000, 5]
    if me == 0:
        finish(transport, *[transport.post_send(other, ONE, message(size, 1)) for size in sizes])
        receive(transport, other, BACK, 1)
        finish(transport, *[transport.post_send(other, ONE, message(size, 2)) for size in sizes])
        return
    arrays = [np.zeros(300000, np.uint8) for _ in sizes]
    pendings = [transport.post_receive(other, ONE, array) for array in arrays]
    finish(transport, *reversed(pendings))
    assert [pending.received for pending in pendings] == sizes
    assert all(np.array_equal(array[:size], message(size, 1)) for array, size in zip(arrays, sizes))
    send(transport, other, BACK, message(1, 0))
    assert all(np.array_equal(receive(transport, other, ONE, 300000), message(size, 2)) for size in sizes)


def channels_do_not_wait_for_each_other(transport, me, other):
    """A receive takes the first message of its own channel, whatever was sent before on others."""
    if me == 0:
        finish(transport, *[transport.post_send(other, channel, message(100 + channel, channel))
                            for channel in (ONE, TWO, ONE, TWO)])
        return
    for channel in (TWO, TWO, ONE, ONE):
        assert np.array_equal(receive(transport, other, channel, 1000), message(100 + channel, channel))


def a_message_may_be_shorter_than_its_place_and_empty(transport, me, other):
    """The length that came is told; what is behind it stays."""
    if me == 0:
        send(transport, other, ONE, message(3, 0))
        send(transport, other, ONE, message(0, 0))
        send(transport, other, ONE, message(10, 0))
        return
    array = np.full(10, 7, np.uint8)
    pending = transport.post_receive(other, ONE, array)
    finish(transport, pending)
    assert pending.received == 3 and np.array_equal(array, [*message(3, 0), *[7] * 7])
    assert receive(transport, other, ONE, 0).size == 0
    assert np.array_equal(receive(transport, other, ONE, 10), message(10, 0))


def parts_of_an_array_are_sent_and_filled(transport, me, other):
    """A large array goes in cuts, straight from and to where it lies."""
    whole = message(200001, 5)
    cuts = protocol.cuts(len(whole), 1024)
    assert len(cuts) == 196
    if me == 0:
        finish(transport, *[transport.post_send(other, ONE, whole[start:stop]) for start, stop in cuts])
        return
    found = np.zeros_like(whole)
    finish(transport, *[transport.post_receive(other, ONE, found[start:stop]) for start, stop in cuts])
    assert np.array_equal(found, whole)


def both_may_send_much_at_once(transport, me, other):
    """Neither needs the other to receive first."""
    size = 4 << 20
    sending = transport.post_send(other, ONE, message(size, me))
    assert np.array_equal(receive(transport, other, ONE, size), message(size, 1 - me))
    finish(transport, sending)


def a_receive_may_be_given_up(transport, me, other):
    """The next message is for the next receive."""
    if me == 0:
        receive(transport, other, BACK, 1)
        send(transport, other, ONE, message(50, 0))
        return
    given_up = np.zeros(50, np.uint8)
    transport.withdraw(transport.post_receive(other, ONE, given_up))
    send(transport, other, BACK, message(1, 0))
    assert np.array_equal(receive(transport, other, ONE, 50), message(50, 0))
    assert not given_up.any()


def a_message_too_long_for_its_inbox_is_refused_with_its_sender(transport, me, other):
    """And what lies elsewhere stays as it is, whatever the library writes where."""
    for size in (11, 5000, 3 << 20):
        if me == 0:
            receive(transport, other, BACK, 1)
            send(transport, other, ONE, message(size, 0))
            continue
        inbox, beside = transport.inbox(10), message(1 << 20, 1)
        pending = transport.post_receive(other, ONE, inbox)
        send(transport, other, BACK, message(1, 0))
        with pytest.raises(PeerLost, match=f"rank {other} sent a message longer than the 10 bytes"):
            finish(transport, pending)
        assert np.array_equal(inbox, message(size, 0)[:10]) and np.array_equal(beside, message(1 << 20, 1))


def what_is_dropped_under_way_harms_nobody(transport, me, other):
    """Arrays of sends and receives that an exception has let go are not used for anything else meanwhile."""
    size = 3 << 20
    if me == 0:
        transport.post_send(other, ONE, message(size, 0))
        receive(transport, other, BACK, 1)
        send(transport, other, TWO, message(size, 1))
        send(transport, other, TWO, message(size, 2))
        return
    transport.post_receive(other, TWO, np.zeros(size, np.uint8))
    others = [np.zeros(size, np.uint8) for _ in range(8)]   # where the freed one was, if it was freed
    send(transport, other, BACK, message(1, 0))
    assert np.array_equal(receive(transport, other, TWO, size), message(size, 2))
    assert not any(array.any() for array in others)
    assert np.array_equal(receive(transport, other, ONE, size), message(size, 0))


CHECKS = (order_is_kept_whatever_the_sizes, channels_do_not_wait_for_each_other,
          a_message_may_be_shorter_than_its_place_and_empty, parts_of_an_array_are_sent_and_filled,
          both_may_send_much_at_once, a_receive_may_be_given_up,
          a_message_too_long_for_its_inbox_is_refused_with_its_sender, what_is_dropped_under_way_harms_nobody)
