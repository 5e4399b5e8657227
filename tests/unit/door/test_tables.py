"""Tables by rows through the door: rows go with the dense gradients, and have the bits of a plain loop."""

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.arrays import Rows
from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server.tables.rows import RowOutOfRange
from fleet_mpi.update_rules import RULES, merge
from tests.unit.door.loopback_job import run

HEIGHT, DIM, STEPS = 4000, 5, 3


def batch(worker, step):
    """(ids, gradients): some ids repeat, and workers have some in common."""
    draw = np.random.default_rng([worker, step])
    ids = draw.integers(0, 60, size=(4, 6)) * 61
    return ids, draw.normal(size=(4, 6, DIM)).astype("float32")


def train(job, rule="adagrad", init=("uniform", -1, 1)):
    """Pulls, pushes and steps; returns all rows."""
    params = {"w": np.ones(3, "float32")}
    server, table = job.parameter_server(params, lr=0.5), job.table("users", DIM, HEIGHT, rule, 0.1, init=init)
    for step in range(STEPS):
        ids, grads = batch(job.worker, step)
        rows = table.pull(ids)
        assert rows.shape == (4, 6, DIM) and np.array_equal(rows[0, 0], table.pull([int(ids[0, 0])])[0])
        table.push(ids[:2], grads[:2])
        table.push(ids[2:], grads[2:])
        server.push_pull({"w": np.ones(3, "float32")})
    assert params["w"][0] == -0.5
    out = np.empty((HEIGHT, DIM), "float32")
    assert table.pull(np.arange(HEIGHT), out=out) is out
    return out


def by_hand(first, workers, rule="adagrad"):
    """The same in one process."""
    rows, states = first.copy(), RULES[rule].new_states(first)
    for step in range(STEPS):
        merged = []
        for worker in range(workers):
            ids, grads = batch(worker, step)
            one = merge(Rows(ids.reshape(-1), grads.reshape(-1, DIM), HEIGHT))
            merged.append((one.ids.copy(), one.values.copy()))
        mean = merge(Rows(*(np.concatenate([one[i] for one in merged]) for i in range(2)), HEIGHT))
        mean.values[...] *= np.float32(1.0 / workers)
        RULES[rule].run(rows, mean, np.array([0.1], "float32"), *states, **RULES[rule].complete({}))
    return rows


@pytest.mark.parametrize("rule", ("adagrad", "adam"))
def test_rows_have_the_bits_of_a_plain_loop_for_any_number_of_servers(rule):
    first = np.random.default_rng(3).normal(size=(HEIGHT, DIM)).astype("float32")
    expected = by_hand(first, 2, rule)
    for servers in (0, 1, 3):
        for found in run(lambda job: train(job, rule, first), 2, servers):
            assert np.array_equal(found, expected), servers


def drawn(job, init):
    """First rows."""
    return job.table("users", DIM, HEIGHT, init=init).pull(np.arange(HEIGHT))


@pytest.mark.parametrize("init", (("uniform", -0.5, 0.25), ("normal", 1.0, 0.1), 0.75))
def test_first_rows_are_drawn_alike_by_any_number_of_servers(init):
    with settings.override(FLEET_MPI_SEED=5):
        found = [run(lambda job: drawn(job, init), 1, servers)[0] for servers in (1, 2, 4)]
    assert all(np.array_equal(one, found[0]) for one in found)
    if init == 0.75:
        assert (found[0] == 0.75).all()
    else:
        middle = 1.0 if init[0] == "normal" else -0.125
        assert len(np.unique(found[0])) > HEIGHT and abs(found[0].mean() - middle) < 0.01


def test_a_job_may_have_tables_only():
    def work(job):
        table = job.table("users", 2, 10, "sgd", 1.0)
        table.push([3, 3], np.ones((2, 2), "float32"))
        job.step()
        job.step()
        return table.pull([[3], [4]]).tolist()
    assert run(work, 2, 2) == [[[[-2.0, -2.0]], [[0.0, 0.0]]]] * 2


def test_what_is_pushed_after_a_step_belongs_to_the_next():
    def work(job):
        table = job.table("users", 1, 4, "sgd", 1.0)
        job.step()
        table.push([1], np.ones((1, 1), "float32"))
        before = table.pull([1]).item()
        job.step()
        return before, table.pull([1]).item()
    assert run(work, 1, 1) == [(0.0, -1.0)]


@pytest.mark.parametrize("say, kind, sentence", (
    (lambda job: job.table("t", 0, 4), UsageError, "dim: expected a whole number from 1 up, got 0"),
    (lambda job: job.table("t", 4, 4, dtype="int32"), UsageError, "dtype: expected float32 or float64, got 'int32'"),
    (lambda job: job.table("t", 4, 4, dtype="what"), UsageError, "dtype: expected float32 or float64, got 'what'"),
    (lambda job: job.table("t", 4, 4, init=("normal", 0)), UsageError, "init: expected a number, an array,"),
    (lambda job: job.table("t", 4, 4, init=np.zeros((3, 4), "f4")), UsageError,
     r"init: expected float32 \[4, 4\], got float32 \[3, 4\]"),
    (lambda job: job.table("t", 4, 4, "adagard"), UsageError, "no update rule is called 'adagard'; did you mean"),
    (lambda job: job.table("t", 4, 4, lr=float("nan")), UsageError, "lr: expected a finite number from 0 up, got nan"),
    (lambda job: job.table("t", 4, 4).push([4], np.zeros((1, 4), "f4")), RowOutOfRange, "id 4 at position 0 of 1"),
    (lambda job: job.table("t", 4, 4).push([1], np.zeros((1, 3), "f4")), UsageError,
     r"gradients: expected float32 \[1, 4\], got float32 \[1, 3\]"),
    (lambda job: job.table("t", 4, 4).pull([0.5]), UsageError, "ids are whole numbers, got float64"),
    (lambda job: [job.table("t", 4, 4), job.table("t", 4, 4)], UsageError, "'t'"),
))
def test_what_cannot_be_is_a_sentence(say, kind, sentence):
    with pytest.raises(kind, match=sentence):
        run(say, 1, 0)
