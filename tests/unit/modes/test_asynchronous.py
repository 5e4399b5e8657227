"""Each thing the asynchronous communicator can be told has its meaning; nothing is lost at the end."""

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.arrays import Rows
from fleet_mpi.errors import PeerLost, Stalled, UsageError
from fleet_mpi.modes.asynchronous import AsyncWorker
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.tables.rows import RowTableDescription
from fleet_mpi.placement import Variable, place
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire.protocol import Kind
from tests.unit.modes.loop import LeastSquares, Loop

VARIABLE = (Variable("p", (4,)),)


class Clock:
    """A time that the test sets."""

    now = 0.0

    def __call__(self):
        return self.now


class Scene:
    """One worker whose servers do nothing unless the test lets them; ``seen`` are the pushes a server was given."""

    def __init__(self, servers=1, rate=1.0, **told):
        self.loop = Loop("async", told, servers, 1, VARIABLE, rate=rate)
        self.client, self.clock, self.seen = self.loop.clients[0], Clock(), []
        self.half = AsyncWorker(self.client, clock=self.clock, **told)
        mode = self.loop.servers[0].mode
        update = mode.update

        def watched(push):
            self.seen.append((push.header.step, push.header.count, float(push.image[:4].view(np.float32)[0])))
            update(push)
        mode.update = watched

    def step(self, value=1.0):
        """A step with this gradient."""
        self.loop.grads(0)["p"][...] = value
        self.half.after_backward()

    def value(self):
        """The worker's parameter."""
        return float(self.loop.params(0)["p"][0])

    def requests(self):
        """How many were sent."""
        return self.loop.network.sent[1, 0, int(Channel.REQUEST)]

    def serving(self):
        """From now on servers do their part while the worker waits."""
        self.client.transport.on_wait = self.loop.pump


def apart(**told):
    """A scene whose worker does not wait for parameters."""
    return Scene(**{"independent_recv_thread": True, "min_send_grad_num_before_recv": 100, **told})


def test_gradients_are_summed_while_a_push_is_under_way_up_to_max_merge_var_num():
    scene = apart(max_merge_var_num=3, send_wait_times=0)
    for value in (1.0, 2.0, 3.0, 4.0, 5.0):
        scene.step(value)
    scene.serving()
    scene.half.finish()
    assert scene.seen == [(1, 1, 1.0), (2, 3, 9.0), (3, 1, 5.0)]
    assert scene.loop.servers[0].mode.batches == [5] and scene.value() == -15.0


def test_without_is_sgd_optimizer_the_merged_gradient_is_the_mean():
    scene = apart(max_merge_var_num=3, send_wait_times=0, is_sgd_optimizer=0)
    for value in (1.0, 2.0, 3.0, 4.0):
        scene.step(value)
    scene.serving()
    scene.half.finish()
    assert scene.seen == [(1, 1, 1.0), (2, 3, 3.0)]


def test_gradients_may_change_while_they_are_sent():
    scene = apart(max_merge_var_num=1, thread_pool_size=4)
    for value in (1.0, 2.0, 3.0):
        scene.step(value)
    scene.loop.grads(0)["p"][...] = np.nan
    scene.serving()
    scene.half.finish()
    assert [value for _, _, value in scene.seen] == [1.0, 2.0, 3.0]


def test_a_merge_that_is_not_full_waits_send_wait_times_ten_milliseconds_for_more():
    scene = apart(max_merge_var_num=5, send_wait_times=3)
    scene.step()
    scene.clock.now += 0.029
    scene.step()
    scene.clock.now += 0.029
    scene.step()
    assert scene.requests() == 0
    scene.clock.now += 0.031
    scene.step()
    assert scene.requests() == 1
    scene.serving()
    scene.half.finish()
    assert [count for _, count, _ in scene.seen] == [3, 1]


def test_a_full_merge_is_sent_at_once():
    scene = apart(max_merge_var_num=2, send_wait_times=1000)
    scene.step()
    assert scene.requests() == 0
    scene.step()
    assert scene.requests() == 1


def test_send_queue_size_bounds_what_is_unsent():
    scene = apart(send_queue_size=2)
    for _ in range(3):
        scene.step()
    assert scene.requests() == 1 and len(scene.half.unsent) == 2
    with settings.override(FLAGS_rpc_deadline=50), pytest.raises(Stalled, match="no answer from rank 0"):
        scene.step()


def test_a_full_queue_is_waited_for_only_until_there_is_room():
    scene = apart(send_queue_size=2)
    for _ in range(3):
        scene.step()
    scene.serving()
    scene.step()
    assert sum(merged.count for merged in scene.half.unsent) <= 2
    scene.half.finish()
    assert scene.loop.servers[0].applied == [4]


def test_a_full_queue_sends_a_merge_that_is_not_full():
    scene = apart(send_queue_size=2, max_merge_var_num=100, send_wait_times=1000)
    for _ in range(3):
        scene.step()
    assert scene.requests() == 1 and [merged.count for merged in scene.half.unsent] == [1]


def test_thread_pool_size_bounds_the_requests_under_way():
    scene = apart(thread_pool_size=3)
    for _ in range(6):
        scene.step()
    assert scene.requests() == 3 and len(scene.half.unsent) == 3
    scene.loop.pump()
    scene.step()
    assert scene.requests() == 6 and len(scene.half.unsent) == 1


def test_parameters_are_asked_for_after_more_than_min_send_grad_num_before_recv_gradients():
    scene = apart(min_send_grad_num_before_recv=2, thread_pool_size=10)
    asked = []
    for _ in range(7):
        scene.step()
        asked.append(scene.requests() - scene.client.pushes)
    # One answer has a place: the second request waits for it.
    assert asked == [0, 0, 1, 1, 1, 1, 1]
    scene.loop.pump()
    scene.step()
    assert scene.requests() - scene.client.pushes == 2


def test_parameters_that_come_apart_are_installed_when_a_step_ends():
    scene = apart(min_send_grad_num_before_recv=1, thread_pool_size=10)
    scene.step()
    scene.step()
    assert scene.value() == 0.0
    scene.loop.pump()
    assert scene.value() == 0.0, "a step may be computing"
    scene.step()
    assert scene.value() == -2.0


def test_without_independent_recv_thread_a_push_is_answered_with_parameters_and_waited_for():
    scene = Scene()
    scene.serving()
    for _ in range(3):
        scene.step()
    assert scene.value() == -3.0 and scene.requests() == 3
    scene.half.finish()
    assert scene.requests() == 3


def test_finish_sends_what_is_left_and_takes_what_it_led_to():
    scene = apart(max_merge_var_num=50, send_wait_times=1000, send_queue_size=50)
    for _ in range(7):
        scene.step()
    assert scene.requests() == 0
    scene.serving()
    scene.half.finish()
    assert scene.seen == [(1, 7, 7.0)] and scene.value() == -7.0
    scene.half.finish()
    assert scene.loop.servers[0].mode.batches == [7]


def test_parameters_older_than_those_from_outside_are_not_installed():
    scene = apart(min_send_grad_num_before_recv=0, thread_pool_size=4)
    scene.step()
    scene.serving()
    scene.loop.params(0)["p"][...] = 70.0
    scene.half.restart()
    scene.client.transport.on_wait = None
    scene.step()
    assert scene.value() == 70.0


@pytest.mark.parametrize("told", [{"max_merge_var_num": 0}, {"send_queue_size": 0}, {"thread_pool_size": 1.5},
                                  {"independent_recv_thread": "yes"}, {"send_wait_times": -1},
                                  {"min_send_grad_num_before_recv": True}])
def test_a_setting_that_means_nothing_is_refused_by_name(told):
    with pytest.raises(UsageError, match=f"{next(iter(told))}: expected"):
        Scene(**told)


def test_nobody_waits_for_a_worker_whose_messages_are_held_up():
    loop = Loop("async", {}, 1, 2, VARIABLE, rate=1.0,
                fault=lambda source, target, channel, array: "hold" if source == 2 else None)
    for client in loop.clients:
        client.layout.views(client.grads)["p"][...] = 1.0
    ticket = loop.clients[1].push_pull()
    loop.clients[0].transport.on_wait = loop.pump
    for _ in range(5):
        loop.halves[0].after_backward()
    assert loop.params(0)["p"][0] == -5.0 and loop.servers[0].applied == [5, 0]
    assert loop.servers[0].mode.late(0.0) == []
    loop.network.release()
    loop.pump()
    assert loop.clients[1].is_answered(ticket)
    loop.clients[1].collect(ticket)
    assert loop.params(1)["p"][0] == -6.0


def test_every_push_is_applied_whole_and_never_divided():
    loop = Loop("async", {}, 2, 4, VARIABLE, rate=1.0)
    for client in loop.clients:
        client.layout.views(client.grads)["p"][...] = 1.0
        client.push()
    loop.pump()
    assert (loop.values()["p"] == -4.0).all()


@pytest.mark.parametrize("step", (1, 3))
def test_a_push_that_came_twice_or_after_a_lost_one_is_refused(step):
    loop = Loop("async", {}, 1, 1, VARIABLE)
    loop.clients[0].push()
    loop.pump()
    loop.clients[0].pushes = step - 1
    loop.clients[0].push()
    with pytest.raises(PeerLost, match=f"rank 1 sent push {step}, expected 2"):
        loop.pump()


def test_a_push_alone_is_told_to_be_done():
    loop = Loop("async", {}, 1, 1, VARIABLE)
    kinds = []
    answer = loop.servers[0].answer
    loop.servers[0].answer = lambda inbox, kind=Kind.DONE, *rest: (kinds.append(kind), answer(inbox, kind, *rest))
    ticket = loop.clients[0].push()
    loop.pump()
    loop.clients[0].collect(ticket)
    assert kinds == [Kind.DONE]


def table(servers):
    """A table of ten rows of two elements."""
    placed = place([Variable("rows", (10, 2))], servers, min_block_size=4)
    return RowTableDescription("rows", (10, 2), "float32", tuple(placed.shards), recipe("sgd", "rate"))


def rows_of(loop):
    """The servers' rows put together."""
    whole = np.full((10, 2), np.nan, "f4")
    for server in loop.servers:
        for shard in server.tables[1].shards():
            whole[shard.row_begin:shard.row_begin + shard.rows] = server.tables[1].param("rows", shard.block)
    return whole


@pytest.mark.parametrize("sums", (True, False))
def test_row_gradients_are_merged_by_id(sums):
    told = dict(max_merge_var_num=2, is_sgd_optimizer=sums, send_wait_times=100)
    loop = Loop("async", told, 2, 1, VARIABLE, rate=1.0, row_tables=[table(2)])
    loop.clients[0].transport.on_wait = loop.pump
    for ids, value in (([1, 7], 1.0), ([7, 3], 2.0)):
        loop.halves[0].after_backward([Rows(np.array(ids), np.full((2, 2), value, "f4"), 10)])
    loop.halves[0].after_backward([None])
    loop.halves[0].finish()
    expected = np.zeros((10, 2), "f4")
    expected[[1, 7, 3]] = np.array([[-1.0], [-3.0], [-2.0]]) * (1 if sums else 0.5)
    assert (rows_of(loop) == expected).all()
    assert [server.applied for server in loop.servers] == [[2], [2]]


def test_many_workers_and_servers_learn_without_waiting_for_each_other():
    problem = LeastSquares()
    loop = Loop("async", {"independent_recv_thread": True}, 5, 10, block=2, rate=0.02)
    loop.run(problem.trains(loop, 15))
    assert problem.distance(loop.values()) < 0.5
    assert all(server.mode.batches == [15] * 10 for server in loop.servers)
