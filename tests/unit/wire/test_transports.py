"""Every transport passes the same checks: here loopback, over MPI in tests/mpi/inside/test_transports.py."""

import numpy as np
import pytest

from fleet_mpi.wire.loopback import Network
from tests.unit.wire import transport_checks
from tests.unit.wire.transport_checks import message


@pytest.mark.parametrize("check", transport_checks.CHECKS, ids=lambda check: check.__name__)
def test_loopback(check):
    transport_checks.as_two_ranks(check, Network().transport)


def test_a_sender_may_change_its_array_at_once():
    network, sent, found = Network(), message(10, 0), np.zeros(10, np.uint8)
    assert network.transport(0).post_send(1, 1, sent).done()
    sent[...] = 0
    assert network.transport(1).post_receive(0, 1, found).done()
    assert np.array_equal(found, message(10, 0))


def test_held_messages_come_in_their_order_when_released_and_dropped_ones_never():
    fates = {0: "hold", 1: "drop", 2: "hold", 3: None}
    network = Network(lambda source, target, channel, array: fates[int(array[0])])
    arrays = [np.zeros(1, np.uint8) for _ in range(4)]
    pendings = [network.transport(1).post_receive(0, 1, array) for array in arrays]
    for number in fates:
        network.transport(0).post_send(1, 1, np.array([number], np.uint8))
    assert [pending.done() for pending in pendings] == [True, False, False, False]
    network.release()
    assert [int(array[0]) for array in arrays] == [3, 0, 2, 0]
    assert [pending.done() for pending in pendings] == [True, True, True, False]
    assert network.sent[0, 1, 1] == 4


def test_whoever_waits_lets_others_do_their_part():
    calls = []
    transport = Network().transport(0)
    assert not transport.progress()
    transport.on_wait = lambda: calls.append(1) or True
    assert transport.progress() and calls == [1]
