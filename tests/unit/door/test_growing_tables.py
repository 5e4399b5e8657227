"""Tables without height through the door: the bits of a twin with one, in every mode, saved and loaded."""

import hashlib
import os

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.errors import CheckpointDamaged, FleetError, UsageError
from fleet_mpi.modes import MODES
from tests.unit.door.formats import SAFETENSORS
from tests.unit.door.loopback_job import run
from tests.unit.door.test_modes import OPTIONS

HEIGHT, DIM, FAR = 4000, 5, np.array([-2 ** 63, 2 ** 63 - 1, 10 ** 18, -7])
INIT = ("uniform", -1, 1)
RULES = {"sgd": {}, "momentum": {"mu": 0.8}, "adagrad": {"clip_value": 0.5}, "adam": {"beta1": 0.8},
         "adamw": {"lazy_mode": True}, "ftrl": {"l1": 0.01}}


def digest(*arrays):
    """SHA-256 of their bytes."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in arrays)).hexdigest()


def batch(worker, step):
    """(ids, gradients): some ids repeat, workers have some in common, and some steps have none."""
    draw = np.random.default_rng([worker, step])
    ids = draw.integers(0, 60, size=(4, 6 * (step != 1 + worker))) * 61
    return ids, draw.normal(size=(*ids.shape, DIM)).astype("float32")


def train(job, height, rule, begin=0, end=4):
    """Pulls, pushes and steps; returns the table."""
    params = {"w": np.ones(3, "float32")}
    server, table = job.parameter_server(params, lr=0.5), job.table("users", DIM, height, rule, 0.1, init=INIT,
                                                                    **RULES[rule])
    for step in range(begin, end):
        ids, grads = batch(job.worker, step)
        assert table.pull(ids).shape == (*ids.shape, DIM)
        table.push(ids[:2], grads[:2])
        table.push(ids[2:], grads[2:])
        server.push_pull({"w": np.ones(3, "float32")})
    return table


@pytest.mark.parametrize("rule", RULES)
def test_a_table_without_height_has_the_bits_of_one_with(rule):
    def work(job, height):
        table = train(job, height, rule)
        count = table.count
        job.barrier()
        return digest(table.pull(np.arange(HEIGHT))), count
    with settings.override(FLEET_MPI_SEED=5):
        (expected, _), *_ = run(lambda job: work(job, HEIGHT), 2, 1)
        for servers in (0, 1, 2, 3, 4):
            met = len({one for worker in range(2) for step in range(4) for one in batch(worker, step)[0].ravel()})
            assert run(lambda job: work(job, None), 2, servers) == [(expected, met)] * 2, servers


@pytest.mark.parametrize("init", (("uniform", -0.5, 0.25), ("normal", 1.0, 0.1), 0.75, 0))
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_tables_with_and_without_height_begin_equal(init, dtype):
    def work(job, height):
        return job.table("users", 7, height, init=init, dtype=dtype).pull(np.arange(300)).tobytes()
    with settings.override(FLEET_MPI_SEED=5):
        found = {run(lambda job: work(job, height), 1, servers)[0] for height in (300, None) for servers in (1, 3)}
    assert len(found) == 1


def test_any_id_of_64_bits_is_a_row():
    def work(job):
        table = job.table("users", 2, rule="sgd", lr=1.0)
        assert table.height is None and table.count == 0
        table.push(FAR, np.ones((4, 2), "float32"))
        table.push(FAR[:1], np.ones((1, 2), "float32"))
        job.step()
        out = np.empty((2, 4, 2), "float32")
        assert table.pull([FAR, FAR], out=out) is out
        return out[1, :, 0].tolist(), table.count, table.pull(np.zeros((3, 0), np.int64)).shape
    assert run(work, 2, 3) == [([-2.0, -1.0, -1.0, -1.0], 4, (3, 0, 2))] * 2


# After 24 steps of one worker and 10 of the other, each with a row of its own and one in common: that one, then the
# others'. Half-async averages two batches; in sync the first worker goes on alone after three steps of eight.
SUMS = -2.0 * 34, [[-1.0] * 24, [-1.0] * 10]
IN_MODES = {"sync": (-2.0 * 8, [[-0.5] * 3 + [-1.0] * 5, [-0.5] * 3]), "async": SUMS, "bounded_staleness": SUMS,
            "delay_compensated": SUMS, "half_async": (-2.0 * 17, [[-0.5] * 24, [-0.5] * 10])}
COMMON, OWN = 10 ** 18, np.arange(24) * 10 ** 15


@pytest.mark.parametrize("mode", [name for name in MODES if MODES[name].servers_update])
@pytest.mark.parametrize("servers", (1, 3))
def test_no_update_is_lost_or_doubled_in_any_mode(mode, servers):
    steps, waits = (8, 3) if mode == "sync" else (24, 10), mode in ("sync", "bounded_staleness")
    said = {"max_merge_var_num": 4} if mode == "async" else OPTIONS.get(mode, {})

    def work(job):
        server = job.parameter_server({"w": np.zeros(3, "float32")}, mode=mode, **said)
        table = job.table("users", 1, rule="sgd", lr=1.0)
        for step in range(steps[job.worker]):
            table.push([COMMON, OWN[step] + 1 + job.worker, COMMON], np.ones((3, 1), "float32"))
            server.push_pull({"w": np.ones(3, "float32")})
        if waits and job.worker:
            job.leave()   # who has no more data must not hold the other one up
            return None
        assert table.count   # and with that, all that this worker has left to send is sent
        if not waits:
            job.barrier()
        rows = [table.pull(OWN[:steps[worker]] + 1 + worker).ravel().tolist() for worker in range(2)]
        assert table.count == 1 + sum(steps)
        return table.pull([COMMON]).item(), rows
    found = run(work, 2, servers)
    assert found == [IN_MODES[mode], None if waits else IN_MODES[mode]]


@pytest.mark.parametrize("say, sentence", (
    (lambda job: job.table("t", 4, init=np.zeros((3, 4), "f4")), "init: a table without height cannot begin with an"),
    (lambda job: job.table("t", 4, rule="lamb"), "table 't': a growing table cannot be updated by 'lamb'"),
    (lambda job: job.table("t", 4, rule="adamw"), "table 't': update rule 'adamw' with coeff=0.01 would decay rows"),
    (lambda job: job.table("t", 4, rule="adagard"), "table 't': no update rule is called 'adagard'; did you mean"),
    (lambda job: job.table("t", 4, rule=["sgd"]), "table 't': no update rule is called"),
    (lambda job: job.table("t", 4, l2=0.1), "table 't': l1 and l2 concern every row"),
    (lambda job: job.table("t", 4, clip_norm=0.1), "table 't': clip_norm takes the norm of a whole table"),
    (lambda job: job.table("t", 4, mu=0.1), "table 't': update rule 'adagrad' has no hyper-parameter 'mu'"),
    (lambda job: job.table("t", 4).pull([0.5]), "ids are whole numbers, got float64"),
    (lambda job: [job.table("t", 4), job.table("t", 4)], "'t'"),
    (lambda job: [job.table("t", 4), job.parameter_server({"t@KEYS": np.zeros(2)})], "both be called 't@KEYS'"),
))
def test_what_cannot_be_is_a_sentence(say, sentence):
    with pytest.raises(UsageError, match=sentence):
        run(say, 1, 0)


def test_workers_that_declare_different_heights_are_refused():
    def work(job):
        job.table("t", 4, None if job.worker else 9).pull([1])
    with pytest.raises(UsageError, match=r"t \(table\) is float32 rows of 4 for any id .* with worker 1 and .*\[9, 4"):
        run(work, 2, 1)


def test_rows_have_one_moment_each():
    def work(job):
        table = job.table("users", 2, rule="adagrad_rowwise", lr=1.0)
        table.push([9], np.float32([[3, 4]]))
        job.step()
        return table.pull([9]).tolist()
    root = np.sqrt(np.float32(12.5)) + np.float32(1e-6)
    found, = run(work, 1, 2)
    np.testing.assert_allclose(found, [[-3 / root, -4 / root]], rtol=1e-6)


# ------------------------------------------------------------------ saved and loaded


def whole_run(folder, rule, format=None, servers=2):
    """A job of 2 + 2 steps, saved between: what it ends with."""
    def work(job):
        table = train(job, None, rule, 0, 2)
        job.save(folder, format)
        return go_on(job, table)
    return run(work, 2, servers)


def go_on(job, table):
    """The last two steps; returns what there is then."""
    server = job._declaring.server
    for step in range(2, 4):
        table.push(*batch(job.worker, step))
        server.push_pull({"w": np.ones(3, "float32")})
    job.barrier()
    return digest(table.pull(np.arange(HEIGHT))), table.count


def gone_on(folder, rule, servers, before=0):
    """The last two steps of it, in another job, which has trained for itself ``before``."""
    def work(job):
        table = train(job, None, rule, 0, before)
        job.load(folder)
        assert job.steps == 2
        return go_on(job, table)
    return run(work, 2, servers)


@pytest.mark.parametrize("rule", ("adagrad", "adam", "sgd"))
@pytest.mark.parametrize("format", (None, "all.bin", SAFETENSORS))
def test_a_run_goes_on_with_the_same_bits_with_any_number_of_servers(tmp_path, format, rule):
    with settings.override(FLEET_MPI_SEED=5):
        expected = whole_run(tmp_path, rule, format)
        for servers, before in ((0, 0), (1, 3), (3, 0), (0, 1)):
            assert gone_on(tmp_path, rule, servers, before) == expected, (servers, before)


def test_files_are_the_same_for_any_number_of_servers(tmp_path):
    with settings.override(FLEET_MPI_SEED=5):
        for servers in (0, 1, 3):
            whole_run(tmp_path / str(servers), "adam", servers=servers)
    files = sorted(one for one in os.listdir(tmp_path / "0") if not one.startswith("."))
    assert {"users", "users@KEYS", "users_moment1_0", "users_beta1_pow_acc_0"} <= set(files)
    for one in files:
        assert len({(tmp_path / servers / one).read_bytes() for servers in "013"}) == 1, one


def test_rows_are_fetched_and_stored_by_id():
    def work(job):
        server, table = job.parameter_server({"w": np.zeros(3)}), job.table("users", 2, rule="sgd", lr=1.0)
        table.push(FAR[::-1] if job.worker else FAR, np.ones((4, 2), "float32"))
        server.push_pull({"w": np.zeros(3)})
        found = server.fetch(["users", "users@KEYS"])
        assert found["users@KEYS"].tolist() == sorted(FAR.tolist()) and (found["users"] == -1).all()
        job.barrier()
        server.store({"users@KEYS": np.array([5, -7]), "users": np.full((2, 2), 3, "float32")})
        assert table.count == 2
        return table.pull([5, -7, 10 ** 18])[:, 0].tolist()
    for servers in (0, 1, 3):
        assert run(work, 2, servers) == [[3.0, 3.0, 0.0]] * 2, servers


@pytest.mark.parametrize("values, sentence", (
    ({"users": np.zeros((2, 2), "float32")}, "its values and users@KEYS are stored together"),
    ({"users@KEYS": np.arange(2)}, "its values and users@KEYS are stored together"),
    ({"users": np.zeros((2, 2), "float32"), "users@KEYS": np.arange(3)}, "expected the same number"),
    ({"users": np.zeros((2, 2), "float32"), "users@KEYS": np.zeros(2, np.int64)}, "an id comes twice in users@KEYS"),
    ({"users": np.zeros((2, 3), "float32"), "users@KEYS": np.arange(2)}, r"expected float32 \[-1, 2\], got"),
    ({"users": np.zeros(2, "float32"), "users@KEYS": np.arange(2)}, "store: 'users': expected"),
))
def test_rows_that_do_not_belong_together_are_not_stored(values, sentence):
    def work(job):
        server = job.parameter_server({"w": np.zeros(3)})
        job.table("users", 2, rule="sgd")
        with pytest.raises(UsageError, match=sentence):
            server.store(values)
    run(work, 1, 1)


def test_without_states_those_of_rows_that_are_here_stay(tmp_path):
    def work(job):
        server = job.parameter_server({"w": np.zeros(3)})
        table = job.table("users", 2, rule="adagrad", lr=1.0, initial_accumulator_value=0.5)
        table.push([1, 2], np.ones((2, 2), "float32"))
        job.step()
        job.save(tmp_path)
        saved = table.pull([1, 2]).tolist()
        table.push([2, 3], np.ones((2, 2), "float32"))
        job.step()
        job.load(tmp_path, states=False)
        found = server.fetch()
        assert table.pull([1, 2]).tolist() == saved and job.steps == 2
        return found["users@KEYS"].tolist(), found["users_moment_0"][:, 0].tolist()
    for servers in (1, 2):
        assert run(work, 1, servers) == [([1, 2], [1.5, 2.5])]


def saved(folder, height, count=3, format=None):
    """A save of a table with so many rows."""
    def work(job):
        table = job.table("users", 2, height, rule="sgd")
        table.push(np.arange(count), np.ones((count, 2), "float32"))
        job.step()
        job.save(folder, format)
    run(work, 1, 1)


def loaded(folder, height):
    """What it leads to in a job with a table of this height."""
    def work(job):
        table = job.table("users", 2, height, rule="sgd")
        table.push([1], np.ones((1, 2), "float32"))
        job.step()
        before = table.pull([0, 1, 2]).tolist()
        with pytest.raises(FleetError) as caught:
            job.load(folder)
        assert table.pull([0, 1, 2]).tolist() == before
        return caught.value
    return run(work, 1, 1)[0]


@pytest.mark.parametrize("format", (None, "all.bin", SAFETENSORS))
@pytest.mark.parametrize("before, after", ((None, 3), (3, None)))
def test_tables_with_and_without_height_are_not_mixed_up(tmp_path, before, after, format):
    saved(tmp_path, before, format=format)
    error = loaded(tmp_path, after)
    assert type(error) is CheckpointDamaged and "table 'users' was saved with" in str(error)


@pytest.mark.parametrize("name, array, sentence", (
    ("users@KEYS", None, "users@KEYS"),
    ("users@KEYS", b"damaged", "users@KEYS"),
    ("users", b"", "users"),
))
def test_damaged_files_change_nothing(tmp_path, name, array, sentence):
    saved(tmp_path, None)
    if array is None:
        os.remove(tmp_path / name)
    else:
        (tmp_path / name).write_bytes(array)
    assert sentence in str(loaded(tmp_path, None))
