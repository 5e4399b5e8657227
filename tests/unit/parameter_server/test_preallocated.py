"""Small pushes are written to buffers that stay: one per request in flight, with nothing left of an earlier one."""

import numpy as np

from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.placement import Variable
from fleet_mpi.wire.protocol import HEADER_BYTES
from tests.unit.parameter_server.loopback_job import ApplyAlone, Job

SMALL = (Variable("a", (5, 3)), Variable("b", (7,)))
SGD = recipe("sgd", "lr")


def push(client, value, **options):
    """Push gradients of one value, and wait for the answer."""
    client.grads[...] = np.full(client.layout.nbytes // 4, value, np.float32).view(np.uint8)
    client.collect(client.push_pull(**options))


def test_one_buffer_serves_all_pushes_that_wait_for_their_answer():
    job = Job(2, 1, SMALL, SGD, ApplyAlone)
    client = job.clients[0]
    for _ in range(3):
        push(client, 1.0)
    assert [len(link.requests) for link in client.links] == [1, 1]
    assert all(len(link.asked) <= 1 for link in client.links)
    np.testing.assert_array_equal(job.params()["a"], np.full((5, 3), -1.5, np.float32))


def test_pushes_in_flight_have_buffers_of_their_own_which_later_ones_use():
    client = Job(1, 1, SMALL, SGD, ApplyAlone).clients[0]
    tickets = [client.push() for _ in range(3)]
    buffers = {id(ticket.parts[0].message) for ticket in tickets}
    for ticket in tickets:
        client.collect(ticket)
    again = client.push()
    assert len(buffers) == 3 and id(again.parts[0].message) in buffers and len(client.links[0].requests) == 2
    client.collect(again)


def test_gaps_between_variables_are_zeros_whatever_lies_there_in_the_flat_array():
    client = Job(2, 1, SMALL, SGD, ApplyAlone, min_block_size=1).clients[0]
    client.grads[...] = 255
    ticket = client.push()
    for part in ticket.parts:
        covered = np.zeros(part.image.nbytes, bool)
        for piece in part.image.pieces:
            for run in piece.runs:
                covered[run.image:run.image + run.nbytes] = True
        sent = part.message[len(part.message) - part.image.nbytes:]
        assert (sent[covered] == 255).all() and not sent[~covered].any()
    client.collect(ticket)


def test_another_flat_array_is_sent_from_and_received_into():
    job = Job(2, 1, SMALL, SGD, ApplyAlone)
    client = job.clients[0]
    grads, into = client.layout.new_array(), client.layout.new_array()
    grads.view(np.float32)[...] = 4.0
    push(client, 1.0)
    client.collect(client.push_pull(grads=grads, into=into))
    assert (client.layout.views(into)["b"] == -2.5).all() and (job.params()["b"] == -0.5).all()
    push(client, 1.0)
    assert (job.params()["b"] == -3.0).all()


def test_a_server_writes_its_answers_to_one_buffer_per_worker():
    job = Job(1, 2, SMALL, SGD, ApplyAlone)
    kept = []
    for _ in range(2):
        for client in job.clients:
            push(client, 1.0)
        kept.append([id(inbox.reply.message) for inbox in job.servers[0].inboxes])
    assert kept[0] == kept[1] and kept[0][0] != kept[0][1]
    assert len(job.servers[0].inboxes[0].reply.message) == HEADER_BYTES + job.servers[0].image.nbytes
