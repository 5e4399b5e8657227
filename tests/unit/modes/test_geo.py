"""Geo: what workers' own copies moved by is exchanged every k steps, by the formulas, and at the end."""

import numpy as np
import pytest

from fleet_mpi import modes, update_rules
from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.tables.rows import RowTableDescription
from fleet_mpi.placement import Variable, place
from fleet_mpi.ranks import waiting
from tests.unit.modes.loop import LeastSquares, Loop

VARIABLE = (Variable("p", (5,)),)


def job(workers=2, servers=1, **told):
    """A job whose servers do their part while a worker waits, and start from 10."""
    loop = Loop("geo", told, servers, workers, VARIABLE, rule="adam", block=2)
    loop.store({"p": np.full(5, 10.0, "f4")})
    for worker, client in enumerate(loop.clients):
        client.transport.on_wait = loop.pump
        client.collect(client.pull())
        loop.halves[worker].restart()
    return loop


def move(loop, worker, by):
    """A step that moves the worker's own copy."""
    loop.params(worker)["p"][...] += np.float32(by)
    loop.halves[worker].after_backward()


def test_the_exchange_is_that_of_the_formulas():
    loop = job(workers=2, k_steps=1)
    move(loop, 0, 4.0)      # delta 2, old 12: p 12, w 14 + 12 - 12
    assert loop.values()["p"][0] == 12.0 and loop.params(0)["p"][0] == 14.0
    move(loop, 1, -8.0)     # delta -4, old 6: p 8, w 2 + 8 - 6
    assert loop.values()["p"][0] == 8.0 and loop.params(1)["p"][0] == 4.0
    move(loop, 0, 0.0)      # delta (14 - 12) / 2 = 1, old 13: p 9, w 14 + 9 - 13
    assert loop.values()["p"][0] == 9.0 and loop.params(0)["p"][0] == 10.0


def test_nothing_travels_between_the_exchanges():
    loop = job(k_steps=3)
    for _ in range(2):
        move(loop, 0, 1.0)
    assert loop.servers[0].applied == [0, 0] and (loop.values()["p"] == 10.0).all()
    move(loop, 0, 1.0)
    assert loop.servers[0].applied == [1, 0] and loop.servers[0].mode.batches == [3, 0]
    assert (loop.values()["p"] == 11.5).all()


def test_steps_that_are_left_are_exchanged_at_the_end():
    loop = job(servers=3, k_steps=100)
    for _ in range(7):
        move(loop, 1, 2.0)
    loop.halves[1].finish()
    loop.halves[1].finish()
    assert all(server.mode.batches == [0, 7] for server in loop.servers)
    assert (loop.values()["p"] == 17.0).all()


def test_one_worker_alone_has_what_the_servers_have_to_the_bit():
    loop = job(workers=1, servers=2, k_steps=2)
    rng = np.random.default_rng(0)
    for _ in range(10):
        move(loop, 0, rng.normal(size=5))
    assert (loop.values()["p"] == loop.params(0)["p"]).all()


def test_a_copy_that_began_by_itself_learns_what_the_servers_have_first():
    loop = Loop("geo", {"k_steps": 1}, 2, 1, VARIABLE, block=2)
    loop.store({"p": np.full(5, 10.0, "f4")})
    loop.clients[0].transport.on_wait = loop.pump
    loop.params(0)["p"][...] = 10.0
    move(loop, 0, 0.5)
    assert (loop.values()["p"] == 10.5).all() and (loop.params(0)["p"] == 10.5).all()


def test_servers_add_whatever_the_recipe_says():
    loop = job(workers=1, k_steps=1)
    loop.clients[0].rates[...] = 55.0
    move(loop, 0, 0.5)
    assert (loop.values()["p"] == 10.5).all()


@pytest.mark.parametrize("rule, rate, hypers", [
    ("adam", 0.05, {}), ("momentum", 0.02, {"mu": 0.5}), ("adagrad", 0.3, {})])
def test_any_optimizer_may_run_on_the_worker(rule, rate, hypers):
    problem, rule = LeastSquares(), update_rules.RULES[rule]
    loop = Loop("geo", {"k_steps": 5}, 2, 3, block=4)
    states = [{name: rule.new_states(np.zeros_like(param)) for name, param in loop.params(worker).items()}
              for worker in range(3)]
    rate = np.array([rate], "f4")

    def body(worker):
        client, half = loop.clients[worker], loop.halves[worker]
        client.collect(client.pull())
        half.restart()
        for step in range(103):
            loop.pause(worker)
            problem.gradient(loop, worker, step)
            for name, param in loop.params(worker).items():
                rule.run(param, loop.grads(worker)[name], rate, *states[worker][name], **rule.complete(hypers))
            half.after_backward()
        half.finish()
        client.leave()
    loop.run(body)
    assert problem.distance(loop.values()) < 0.6 < problem.distance({"w": np.zeros((6, 3)), "b": np.zeros(3)})
    assert all(server.mode.batches == [103] * 3 and server.applied == [21] * 3 for server in loop.servers)


def test_a_table_by_rows_is_refused_by_name():
    placed = place([Variable("ids", (10, 2))], 1)
    table = RowTableDescription("ids", (10, 2), "float32", tuple(placed.shards), recipe("sgd", "rate"))
    with pytest.raises(UsageError, match="geo trains whole copies: place ids as dense variables"):
        Loop("geo", {}, row_tables=[table])


def test_fewer_than_one_step_is_refused():
    with pytest.raises(UsageError, match="k_steps: expected a whole number from 1 up, got 0"):
        job(k_steps=0)


def test_the_first_exchange_has_no_time_of_a_first_step():
    """Which is over long before: the servers compile nothing."""
    client = Loop("geo", {"k_steps": 100}, workers=1).clients[0]
    client.first_step_s, client.is_first_step = 1000.0, True
    modes.worker_half("geo", client, {"k_steps": 100})
    assert client._limit_s() == pytest.approx(1.1 * waiting.deadline_s() + 2)
