"""Tables without height in geo: workers train copies of the rows they use, and only rows that they updated travel."""

import hashlib
import os
import threading

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.parameter_server.tables.growing.table import GrowingTable
from tests.unit.door.loopback_job import run

HEIGHT, DIM, INIT, FAR = 30, 5, ("uniform", -1, 1), np.array([-2 ** 63, 2 ** 63 - 1, -1, 10 ** 10])
RULES = {"sgd": {}, "adagrad": {"clip_value": 0.5}, "momentum": {"mu": 0.8}, "adam": {"beta1": 0.8}}


def geo(job, k_steps=1, **params):
    """The parameters of a job in geo."""
    return job.parameter_server({"w": np.zeros(2, "float32"), **params}, mode="geo", k_steps=k_steps)


def in_turns(job, turns):
    """Yield this worker's turns: all others wait meanwhile."""
    for turn in range(turns * job.workers):
        if turn % job.workers == job.worker:
            yield turn
        job.barrier()


def table_of(job, value=10.0, **said):
    """A table whose rows move by what their gradients lack of zero."""
    return job.table("users", 1, rule="sgd", lr=1.0, init=value, **said)


def push(job, table, *ids, grad=-4.0):
    """A step that moves some rows."""
    table.push(list(ids), np.full((len(ids), 1), grad, "float32"))
    job.step()


# ------------------------------------------------------------------ twins


def trained(job, rule, first, dtype):
    """Intervals of two steps, in turns, that together have every row; ``first``: the rows of the dense twin, or None.

    Returns SHA-256 of a worker's copies and of the servers' values.
    """
    params = {"w": np.ones(3, dtype), **({} if first is None else {"users": first.copy()})}
    server = job.parameter_server(params, rule, 0.1, mode="geo", k_steps=2, **RULES[rule])
    table = None
    if first is None:
        table = job.table("users", DIM, None, rule, 0.1, init=INIT, dtype=dtype, **RULES[rule])
    server.pull()
    if table is not None:
        table.pull(np.arange(HEIGHT))   # copies begin with the servers' first values, as whole ones do
    job.barrier()
    for turn in in_turns(job, 3):
        draw = np.random.default_rng([job.worker, turn])
        order = draw.permutation(HEIGHT)
        for ids in (order[:20], order[15:]):
            rows = params["users"][ids] if table is None else table.pull(ids)
            grads = rows / 2 + draw.normal(size=rows.shape).astype(dtype)
            if table is None:
                whole = np.zeros((HEIGHT, DIM), dtype)
                whole[ids] = grads
                server.push_pull({"w": np.ones(3, dtype), "users": whole})
            else:
                table.push(ids, grads)
                server.push_pull({"w": np.ones(3, dtype)})
    mine = params["users"] if table is None else table.pull(np.arange(HEIGHT))
    found = [hashlib.sha256(one.tobytes()).hexdigest() for one in (mine, server.fetch(["users"])["users"])]
    job.barrier()
    return found


@pytest.mark.parametrize("rule, dtype", [*((rule, "float32") for rule in RULES), ("adagrad", "float64")])
@pytest.mark.parametrize("workers", (1, 2))
def test_rows_have_the_bits_of_whole_copies(rule, dtype, workers):
    with settings.override(FLEET_MPI_SEED=5):
        first, = run(lambda job: job.table("users", DIM, init=INIT, dtype=dtype).pull(np.arange(HEIGHT)), 1, 1)
        expected = run(lambda job: trained(job, rule, first, dtype), workers, 2)
        for servers in (1, 3):
            assert run(lambda job: trained(job, rule, None, dtype), workers, servers) == expected, servers


# ------------------------------------------------------------------ what travels


def test_only_rows_that_were_updated_since_the_last_exchange_travel(monkeypatch):
    travelled = []
    update, answer = GrowingTable.update, GrowingTable.answer
    monkeypatch.setattr(GrowingTable, "update", lambda self, parts: [
        travelled.append(("pushed", *sorted(parts[0].ids.tolist()))), update(self, parts)])
    monkeypatch.setattr(GrowingTable, "answer", lambda self, ids, out: [
        travelled.append(("pulled", *sorted(ids.tolist()))), answer(self, ids, out)])

    def work(job):
        geo(job, 2)
        table = table_of(job)
        table.pull([1, 2, 3])
        push(job, table, 1, 2)
        table.pull([2, 1, 2])
        push(job, table, 2, 4)
        table.pull([1, 2])
        table.pull([3])
        push(job, table, 1)
        push(job, table, 1)
        table.pull([2])
        job.step()
        job.step()
    run(work, 1, 1)
    assert travelled == [
        ("pulled", 1, 2, 3), ("pulled", 4), ("pushed", 1, 2, 4), ("pulled", 1, 2, 4),
        ("pulled", 3),                      # was only looked at, and forgotten
        ("pushed", 1), ("pulled", 1),
        ("pulled", 2),                      # had no part in the last exchange
        ("pushed",)]


def test_what_others_did_to_a_row_comes_with_an_exchange_or_when_it_is_used_again():
    def work(job):
        server, table, seen = geo(job), table_of(job), []
        server.pull()
        for turn in in_turns(job, 3):
            if turn == 0:
                push(job, table, 7)         # 14; the servers have 12
            if turn == 1:
                seen.append(table.pull([7]).item())
                push(job, table, 7, grad=8.0)   # 4; delta (4 - 12) / 2, the servers have 8
            if turn == 2:
                seen.append(table.pull([7]).item())
                push(job, table, 9)
                seen.append(table.pull([7]).item())
            if turn == 3:
                push(job, table, 9)
                seen.append(table.pull([7]).item())
        return seen
    # As new as the last exchange: 14, then 14 + 8 - 12; and 4 + 8 - 8, what it keeps of its own.
    assert run(work, 2, 2) == [[14.0, 10.0], [12.0, 4.0]]


@pytest.mark.parametrize("servers", [1, 3])
def test_steps_that_are_left_are_exchanged_when_a_worker_leaves(servers):
    has_left = threading.Event()

    def work(job):
        geo(job, 100)
        table = table_of(job)
        if job.worker == 0:
            for _ in range(3):
                push(job, table, *FAR)
            job.leave()
            has_left.set()
            return None
        table.pull([0])
        assert has_left.wait(60)
        return table.pull(FAR).ravel().tolist(), table.count
    assert run(work, 2, servers)[1] == ([16.0] * 4, 4)


def test_a_learning_rate_may_follow_the_steps():
    def work(job):
        geo(job)
        table = job.table("users", 1, rule="sgd", lr=lambda step: [1.0, 0.5, 0.25][step])
        for _ in range(3):
            push(job, table, 1)
        return table.pull([1]).item()
    assert run(work, 1, 1) == [7.0]


# ------------------------------------------------------------------ what servers keep


def test_a_row_that_is_not_admitted_is_used_until_the_exchange_and_not_stored():
    def work(job):
        geo(job, 2)
        table = table_of(job, admit=("seen", 2), evict=("older_than", 2), evict_every=1)
        push(job, table, 1)
        assert table.pull([1]).item() == 14.0
        push(job, table, 1)
        seen = [table.count, table.pull([1]).item()]
        push(job, table, 1)
        seen += [table.count, table.pull([1]).item()]   # counting sends what is left
        for _ in range(2 * 3):
            push(job, table, 2)
        return [*seen, table.count, table.pull([1]).item()]
    assert run(work, 1, 2) == [[0, 10.0, 1, 14.0, 1, 10.0]]


def test_rows_beyond_the_servers_budget_are_refused():
    def work(job):
        geo(job)
        table = table_of(job, budget_bytes=4096)
        for begin in range(0, 10 ** 4, 100):
            push(job, table, *range(begin, begin + 100))
    with pytest.raises(EnvironmentProblem, match="table 'users': server 0 stores .*budget_bytes=4,096"):
        run(work, 1, 1)


@pytest.mark.parametrize("first", ("parameters", "table"))
def test_a_table_with_a_height_is_refused(first):
    def work(job):
        calls = [lambda: geo(job), lambda: job.table("users", 2, 10)]
        for call in calls if first == "parameters" else calls[::-1]:
            call()
    with pytest.raises(UsageError, match="table 'users': mode 'geo' trains copies in each worker.*leave out height"):
        run(work, 1, 1)


# ------------------------------------------------------------------ saved and loaded


def test_servers_rows_are_saved_and_loaded_by_any_number_of_servers(tmp_path):
    def declared(job, mode="geo"):
        options = {"k_steps": 2} if mode == "geo" else {}
        return (job.parameter_server({"w": np.zeros(2, "float32")}, mode=mode, **options),
                job.table("users", 2, rule="adagrad", lr=0.5, init=INIT))

    def save(job):
        server, table = declared(job)
        for _ in range(3):
            table.push(FAR, np.ones((4, 2), "float32"))
            job.step()
        job.save(tmp_path)
        return server.fetch(["users"])["users"].tolist()

    def load(job, mode):
        _, table = declared(job, mode)
        table.push(FAR[:2], np.ones((2, 2), "float32"))
        job.step()
        job.load(tmp_path, states=mode == "geo")
        return table.pull(np.sort(FAR)).tolist(), job.steps, table.count
    with settings.override(FLEET_MPI_SEED=5):
        expected, = run(save, 1, 2)
        assert {one for one in os.listdir(tmp_path) if one.startswith("users")} == {"users", "users@KEYS"}
        for servers in (1, 3):
            assert run(lambda job: load(job, "geo"), 2, servers) == [(expected, 3, 4)] * 2
        assert run(lambda job: load(job, "sync"), 1, 2) == [(expected, 1, 4)]


def test_what_is_stored_replaces_copies():
    def work(job):
        server = geo(job, 100)
        table = table_of(job)
        push(job, table, 1, 2)
        server.store({"users@KEYS": np.array([1]), "users": np.array([[3.0]], "float32")})
        seen = table.pull([1, 2]).ravel().tolist()
        push(job, table, 1)
        server.pull()   # instead of what was not sent yet
        return [*seen, table.pull([1]).item()]
    assert run(work, 1, 2) == [[3.0, 10.0, 3.0]]
