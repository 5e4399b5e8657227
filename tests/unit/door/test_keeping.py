"""Which rows a table keeps, through the door: words, exact counts, any number of servers, files, budgets."""

import hashlib

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.door import keeping
from fleet_mpi.door.declaration import Declaration, Kept
from fleet_mpi.errors import EnvironmentProblem, FleetError, UsageError
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.tables.growing.eviction import LEAST_KEPT
from fleet_mpi.parameter_server.tables.growing.keeping import Keeping
from tests.unit.door.formats import SAFETENSORS
from tests.unit.door.loopback_job import run

DIM, IDS = 3, 200
WORDS = ({"admit": ("seen", 3)}, {"admit": ("probability", 0.4)}, {"evict": ("older_than", 2), "evict_every": 2},
         {"admit": ("seen", 2), "evict": ("fewer_than", 3), "evict_every": 3},
         {"score": "count", "evict": ("at_most", LEAST_KEPT), "evict_every": 1})


def batch(worker, step):
    """(ids, gradients)."""
    draw = np.random.default_rng([worker, step])
    ids = draw.integers(0, draw.integers(1, IDS), 40) ** 2
    return ids, draw.normal(size=(40, DIM)).astype("float32")


def train(job, begin=0, end=6, table=None, **words):
    """Some steps; returns the table."""
    table = table or job.table("users", DIM, rule="adagrad", lr=0.1, init=("uniform", -1, 1), **words)
    for step in range(begin, end):
        table.push(*batch(job.worker, step))
        job.step()
    return table


def look(job, table):
    """(how many rows, SHA-256 of all), the same for every worker."""
    job.barrier()
    rows = table.pull(np.arange(IDS) ** 2)
    found = table.count, hashlib.sha256(rows.tobytes()).hexdigest()
    job.barrier()
    return found


@pytest.mark.parametrize("words", WORDS, ids=str)
def test_the_same_rows_are_kept_by_any_number_of_servers(words):
    with settings.override(FLEET_MPI_SEED=5):
        found = {one for servers in (1, 2, 3, 4)
                 for one in run(lambda job: look(job, train(job, **words)), 2, servers)}
        everything, = set(run(lambda job: look(job, train(job)), 2, 2))
    (count, _), = found
    assert 0 < count <= everything[0]
    assert (count < everything[0]) == (words["evict"][0] != "at_most" if "evict" in words else True)


def test_a_table_that_is_told_nothing_has_no_keeper():
    from fleet_mpi.parameter_server.tables.growing.description import GrowingDescription
    described = GrowingDescription("t", 3, "float32", recipe("sgd", "lr"), keeping=Keeping(budget_bytes=1 << 20))
    table = described.table(0, {"lr": np.zeros(1, np.float32)})
    assert table.keeper is None and table.store.scores is None and table.store.budget_bytes == 1 << 20


# ---------------------------------------------------------------------- shrinking


@pytest.mark.parametrize("servers", (0, 1, 3))
def test_any_worker_shrinks_a_table_of_all_servers_at_one_moment(servers):
    def work(job):
        table = job.table("users", 1, rule="sgd", lr=1.0, score="count")
        for step in range(3):
            table.push(np.arange(step * 10, 30), np.ones((30 - step * 10, 1), "float32"))
            job.step()
        job.barrier()
        gone = table.shrink(fewer_than=3 if servers else 2) if job.worker == job.workers - 1 else None
        job.barrier()
        rows = table.pull([0, 9, 10, 29]).reshape(-1).tolist()
        again = table.shrink(fewer_than=1) if job.worker == job.workers - 1 and servers else None
        return gone, rows, again
    found = run(work, 1 if not servers else 2, servers)
    gone, rows, again = found[-1]
    if servers:   # two workers' pushes count each
        assert (gone, rows, again) == (10, [0.0, 0.0, -2.0, -3.0], 0) or (gone, rows) == (10, [0.0, 0.0, -2.0, -3.0])
    else:
        assert (gone, rows) == (10, [0.0, 0.0, -2.0, -3.0])


def test_shrinking_by_age():
    def work(job):
        table = job.table("users", 1, rule="sgd", lr=1.0, score="last_seen")
        for step in range(4):
            table.push([step], np.ones((1, 1), "float32"))
            job.step()
        return table.shrink(older_than=2), table.count, table.shrink(older_than=2), table.pull([0, 3]).ravel().tolist()
    for servers in (0, 1, 2):
        assert run(work, 1, servers) == [(2, 2, 0, [0.0, -1.0])]


@pytest.mark.parametrize("asked, sentence", (
    ({}, "older_than=n or fewer_than=n, got neither"), ({"older_than": 1, "fewer_than": 1}, "expected older_than=n or"),
    ({"fewer_than": 3}, "looks at the score 'count', the table keeps 'last_seen'"), ({"older_than": 0}, "from 1 up")))
def test_shrinking_by_what_is_not_kept_is_refused(asked, sentence):
    with pytest.raises(UsageError, match=sentence):
        run(lambda job: job.table("users", 1, score="last_seen").shrink(**asked), 1, 1)


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize("words", [one for one in WORDS if one.get("admit", ("",))[0] != "seen"], ids=str)
@pytest.mark.parametrize("format", (None, SAFETENSORS))
def test_a_run_that_is_resumed_by_other_servers_keeps_the_rows_of_one_that_goes_on(tmp_path, words, format):
    def first(job):
        table = train(job, 0, 3, **words)
        job.save(tmp_path, format)
        job.barrier()
        return look(job, train(job, 3, 7, table))

    def second(job):
        table = job.table("users", DIM, rule="adagrad", lr=0.1, init=("uniform", -1, 1), **words)
        job.load(tmp_path)
        return look(job, train(job, 3, 7, table))
    with settings.override(FLEET_MPI_SEED=5):
        assert len({*run(first, 2, 2), *run(second, 2, 3), *run(second, 2, 1)}) == 1


def test_rows_that_are_loaded_without_states_are_as_good_as_new(tmp_path):
    words = {"evict": ("older_than", 3), "evict_every": 1}

    def first(job):
        count = train(job, 0, 3, **words).count
        job.save(tmp_path)
        return count

    def second(job):
        table = train(job, 0, 5, **words)
        job.load(tmp_path, states=False)
        before = table.count
        table.push([-1], np.ones((1, DIM), "float32"))
        job.step()
        return before, table.count
    count, = run(first, 1, 1)
    (before, after), = run(second, 1, 1)
    assert before == count and count // 2 < after <= count + 1


# ---------------------------------------------------------------------- budgets


def test_a_step_beyond_the_budget_is_refused_with_the_name_of_table_and_setting():
    def work(job):
        small = job.table("small", 1, rule="sgd", lr=1.0, budget_bytes=60_000)
        large = job.table("large", 1, rule="sgd", lr=1.0)
        large.push([1], np.ones((1, 1), "float32"))
        small.push(np.arange(100_000), np.ones((100_000, 1), "float32"))
        job.step()
    with pytest.raises(EnvironmentProblem, match=r"table 'small': server 0 stores 0 rows of it and is to take 100,000 "
                                                 r"more: there is room for .* \(budget_bytes=60,000\)"):
        run(work, 1, 1)


def test_a_full_table_goes_on_where_it_evicts():
    def work(job):
        table = job.table("users", 1, rule="sgd", lr=1.0, score="last_seen", evict=("at_most", LEAST_KEPT),
                          budget_bytes=100_000, when_full="evict")
        for step in range(30):
            table.push(np.arange(step * 500, step * 500 + 500), np.ones((500, 1), "float32"))
            job.step()
        return table.count, table.pull(np.arange(14_500, 15_000)).mean()
    (count, newest), = run(work, 1, 1)
    assert 2000 < count < 15_000 and newest == -1.0


# ---------------------------------------------------------------------- words


@pytest.mark.parametrize("said, sentence", (
    ({"admit": "sometimes"}, r"table 'users': admit: nothing is called 'sometimes' here"),
    ({"admit": ("sen", 3)}, "did you mean 'seen'"), ({"admit": "seen"}, "'seen' without a number"),
    ({"admit": ("seen", 0)}, "admit 'seen': expected a whole number from 1 up"),
    ({"admit": ("seen", 256)}, "up to 255"),
    ({"admit": 3}, r"expected \"all\", \(\"seen\", k\) or"), ({"admit": ("probability", 1.5)}, "from 0.0 to 1.0"),
    ({"admit": ("probability", 0)}, "no row is ever stored"), ({"score": "counts"}, "did you mean 'count'"),
    ({"evict": ("older", 5)}, "did you mean 'older_than'"), ({"evict": ("at_most", 100)}, "needs at least 16,384"),
    ({"evict": ("at_most", LEAST_KEPT)}, "say which with score="), ({"evict_every": 0}, "evict_every: expected"),
    ({"evict": ("older_than", 5), "score": "count"}, "looks at the score 'last_seen', got score='count'"),
    ({"budget_bytes": -1}, "budget_bytes: expected a whole number"), ({"when_full": "evicts"}, "did you mean 'evict'"),
    ({"when_full": "evict"}, "expected both, got evict=None"),
    ({"height": 10, "score": "count"}, "score='count': a table with height keeps every row")))
def test_words_that_cannot_be_are_refused_when_they_are_said(said, sentence):
    with pytest.raises(UsageError, match=sentence):
        run(lambda job: job.table("users", 3, **said), 1, 1)


def test_words_are_plain_data_and_part_of_what_workers_compare():
    words = keeping.checked({**keeping.UNSAID, "admit": ("seen", 3), "evict": ("older_than", 9)}, "t")
    assert words == Keeping(("seen", 3), "last_seen", ("older_than", 9), 100)
    one = Declaration(tables=(Kept("t", (-1, 3), "float32", recipe("sgd", "lr"), keeping=words),))
    assert Declaration.from_bytes(one.to_bytes(), "worker 0").tables[0].keeping == words

    def work(job):
        job.table("users", 3, admit=("seen", 2 + job.worker)).pull([1])
    with pytest.raises(FleetError, match=r"admit=\('seen', 3\) with worker 1 and .*admit=\('seen', 2\) with worker 0"):
        run(work, 2, 1)
