"""What a job keeps, saved in one layout and loaded in another: training goes on with the same bits."""

import os

import numpy as np
import pytest

from fleet_mpi.errors import CheckpointDamaged, FleetError, UsageError
from tests.unit.door.loopback_job import run


def declared(job, mode="sync", **said):
    """(parameters, server, table)."""
    params = {"w": np.full((210, 97), 0.5, "float32"), "b": np.zeros(7)}
    server = job.parameter_server(params, "adam", 0.01, mode=mode, rates={"b": 2.0}, **said)
    return params, server, None if mode == "geo" else job.table("users", 3, 9000, "adagrad", 0.1, init=("normal", 0, 1))


def train(job, params, server, table, steps):
    """Steps of this worker, numbered as the server numbers them."""
    for _ in range(steps):
        draw = np.random.default_rng([job.worker, server.steps])
        if table is not None:
            table.push(draw.integers(0, 9000, 20), draw.normal(size=(20, 3)).astype("float32"))
        server.push_pull({name: draw.normal(size=one.shape).astype(one.dtype) for name, one in params.items()})
    rows = [] if table is None else [table.pull(np.arange(9000)).tobytes()]
    return [one.tobytes() for one in params.values()] + rows


def whole_run(folder, format=None, mode="sync"):
    """A job of 2 + 2 steps, saved between: what it ends with."""
    def work(job):
        parts = declared(job, mode)
        train(job, *parts, 2)
        parts[1].lr = 0.02
        job.save(folder, format)
        return train(job, *parts, 2)
    return run(work, 2, 2)


def gone_on(folder, servers):
    """The last two steps of it, in another job."""
    def work(job):
        parts = declared(job)
        job.load(folder)
        assert parts[1].steps == 2 and parts[1].lr == 0.02
        return train(job, *parts, 2)
    return run(work, 2, servers)


@pytest.mark.parametrize("format", (None, "all.bin"))
def test_a_run_goes_on_with_the_same_bits_with_any_number_of_servers(tmp_path, format):
    expected = whole_run(tmp_path / "model", format)
    files = {one for one in os.listdir(tmp_path / "model") if not one.startswith(".")}
    assert files == ({"all.bin", "all.states.bin"} if format else {
        "b", "b_beta1_pow_acc_0", "b_beta2_pow_acc_0", "b_moment1_0", "b_moment2_0", "users", "users_moment_0",
        "w", "w_beta1_pow_acc_0", "w_beta2_pow_acc_0", "w_moment1_0", "w_moment2_0"})
    for servers in (0, 1, 3):
        assert gone_on(tmp_path / "model", servers) == expected, servers


def test_a_job_without_servers_saves_too(tmp_path):
    def work(job):
        parts = declared(job)
        train(job, *parts, 1)
        job.save(tmp_path)
        return train(job, *parts, 0)

    def load(job):
        parts = declared(job)
        job.load(tmp_path)
        return train(job, *parts, 0)
    assert run(work, 2, 0) == run(load, 2, 2)


def test_workers_states_are_saved_where_workers_have_the_rule(tmp_path):
    def work(job):
        parts = declared(job, "geo", k_steps=1)
        train(job, *parts, 2)
        job.save(tmp_path)
        return parts[1].fetch()["w_moment1_0"].tobytes()

    def load(job):
        parts = declared(job, "geo", k_steps=1)
        job.load(tmp_path)
        return parts[1].fetch()["w_moment1_0"].tobytes()
    saved, = run(work, 1, 1)
    assert run(load, 2, 1) == [saved] * 2


def test_values_can_be_fetched_and_stored_whole():
    def work(job):
        params, server, _ = declared(job)
        server.push_pull({name: np.ones_like(one) for name, one in params.items()})
        found = server.fetch()
        assert set(found) >= {"w", "users", "w_moment1_0"} and np.array_equal(found["w"], params["w"])
        job.barrier()
        server.store({"w": np.full((210, 97), 3.0 + job.worker, "float32"), "b_moment1_0": np.full(7, 4.0)})
        found = server.fetch()
        return params["w"][0, 0], found["b_moment1_0"][3]
    for servers in (0, 1, 2):
        assert run(work, 2, servers) == [(3.0, 4.0)] * 2


def test_the_first_worker_that_is_left_saves(tmp_path):
    def work(job):
        params = {"w": np.zeros(3)}
        server = job.parameter_server(params, lr=1.0)
        server.push_pull({"w": np.ones(3)})
        if job.worker == 0:
            job.leave()
            return None
        server.push_pull({"w": np.ones(3)})
        job.save(tmp_path)
        return os.path.exists(tmp_path / "w"), params["w"].tolist()
    assert run(work, 2, 1)[1] == (True, [-2.0, -2.0, -2.0])


def test_only_parameters_may_be_loaded(tmp_path):
    def work(job):
        parts = declared(job)
        train(job, *parts, 1)
        job.save(tmp_path)
        job.load(tmp_path, states=False)
        return parts[1].steps, parts[1].fetch()["w_moment1_0"].any()
    assert run(work, 1, 1) == [(1, True)]


def test_what_does_not_fit_changes_nothing(tmp_path):
    def save(job):
        job.parameter_server({"w": np.zeros(3), "b": np.ones(2)})
        job.save(tmp_path)

    def load(job):
        params = {"w": np.zeros(4), "b": np.zeros(2)}
        server = job.parameter_server(params)
        try:
            job.load(tmp_path)
        except FleetError as error:
            server.pull()
            return type(error), str(error), error.reported_by_peer, params["b"].tolist()
    run(save, 1, 1)
    (kind, text, _, values), (_, told, is_reported, _) = run(load, 2, 1)
    assert kind is CheckpointDamaged and "w: kept float64[4], found float64[3]" in text and values == [0.0, 0.0]
    assert is_reported and "worker 0 says: " in told


def test_an_unknown_format_is_a_sentence(tmp_path):
    def work(job):
        job.parameter_server({"w": np.zeros(3)})
        job.save(tmp_path, "pickle")
    with pytest.raises(UsageError, match="save: no format is called 'pickle'"):
        run(work, 1, 1)
