"""Tables of programs that grow: on servers they have the bits of one process, by the same optimizer."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.fleet.entries import CountFilterEntry, ProbabilityEntry, ShowClickEntry
from fleet_mpi.parameter_server.description import StateKey
from fleet_mpi.parameter_server.tables.base import UPDATES
from fleet_mpi.runtime import sessions
from fleet_mpi.transpile.print_log import placement_lines
from fleet_mpi.transpile.server_program import server_program
from tests.unit.growing_program import FAR, WIDTH, GrowingJob, batch
from tests.unit.program.building import from_scratch


def with_variable_beta(value):
    """Adam whose beta1 is a variable that keeps its value."""
    return fluid.optimizer.Adam(0.3, beta1=fluid.layers.create_global_var([1], value, "float32", persistable=True))


OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.5), "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "adam": lambda: fluid.optimizer.Adam(0.1, beta1=0.8, beta2=0.9, epsilon=1e-3),
    "lazy": lambda: fluid.optimizer.Adam(0.1, lazy_mode=True),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.3, initial_accumulator_value=0.1),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.1),
    "variable": lambda: with_variable_beta(0.9),
    "scheduled": lambda: fluid.optimizer.Adam(fluid.layers.exponential_decay(0.1, 2, 0.5))}
STEPS = range(4)
GEO = {"sync_mode": False, "geo_sgd_mode": True}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_b16_a_table_that_grows_has_the_bits_of_one_process_by_its_own_optimizer(name):
    alone = GrowingJob(None, OPTIMIZERS[name])
    losses = alone.run(*STEPS)
    for servers in (1, 3):
        job = GrowingJob(servers, OPTIMIZERS[name])
        assert job.run(*STEPS) == losses
        for table in ("shared", "own"):
            assert job.rows(table) == alone.rows(table)
            assert min(job.rows(table)) < -FAR and max(job.rows(table)) > FAR


def test_b15_gradients_of_an_id_that_repeats_in_a_batch_are_summed():
    once, often = (GrowingJob(2, initializer=fluid.initializer.Constant(0.5)) for _ in range(2))
    for job, count in ((once, 1), (often, 8)):
        feed = {**{f"slot{i}": np.full((count, 1), FAR) for i in range(3)}, "target": np.ones((count, 1), "f")}
        job.exe.run(job.main, feed, scope=job.scope)
    # The loss is a mean: eight gradients of an eighth each.
    first, second = (np.frombuffer(job.rows("own")[FAR], "f") for job in (once, often))
    np.testing.assert_allclose(first, second, rtol=1e-6)
    assert (first != 0.5).all()


@pytest.mark.parametrize("name, rule", (("sgd", "sgd"), ("lazy", "adam"), ("adagrad", "adagrad")))
def test_b24_servers_run_the_rule_of_the_optimizer_that_the_script_names(name, rule):
    assert GrowingJob(1, OPTIMIZERS[name]).distribution.recipes["shared"].rule == rule


def test_a_setting_whose_state_begins_otherwise_in_one_process_is_refused():
    with pytest.raises(NotBuilt, match="beta1 is a variable of value 0.8.* begins with 0.9; give beta1 as a number"):
        GrowingJob(1, lambda: with_variable_beta(0.8))


def test_b25_settings_of_an_optimizer_are_those_of_its_script():
    hypers = dict(GrowingJob(1, OPTIMIZERS["adam"]).distribution.recipes["shared"].hypers)
    assert (hypers["beta1"], hypers["beta2"], hypers["epsilon"]) == (0.8, 0.9, 1e-3)
    assert dict(GrowingJob(1, OPTIMIZERS["adagrad"]).distribution.recipes["own"].hypers)[
        "initial_accumulator_value"] == pytest.approx(0.1)


@pytest.mark.parametrize("initializer", (
    fluid.initializer.Constant(0.01), fluid.initializer.Normal(0.0, 0.1), fluid.initializer.Uniform(-0.2, 0.1),
    fluid.initializer.TruncatedNormal(0.0, 0.1), fluid.initializer.Normal(0.0, 0.1, seed=5)), ids=str)
def test_rows_begin_with_the_bits_of_one_process(initializer):
    alone, job = (GrowingJob(servers, initializer=initializer) for servers in (None, 2))
    assert job.run(*STEPS) == alone.run(*STEPS) and job.rows() == alone.rows()


def test_b27_truncated_normal_values_are_finite_and_cut_at_two_deviations():
    job = GrowingJob(1, lambda: fluid.optimizer.SGD(0.0), fluid.initializer.TruncatedNormal(0.0, 0.1))
    job.run(*range(20))
    values = np.concatenate([np.frombuffer(row, "f") for row in job.rows().values()])
    assert len(values) > 100 and np.isfinite(values).all() and 0.1 < np.abs(values).max() <= 0.2


def test_b14_a_distributed_table_without_a_height_is_looked_up_on_servers_by_id():
    job = GrowingJob(2)
    ops = [op.type for op in job.main.global_block().ops]
    assert ops.count("distributed_lookup_table") == 1 and not [one for one in ops if one.startswith("sparse_table")]
    program = server_program(job.distribution, 0, job.updates, "h:0")
    assert program.global_block().ops[0].attr("prefetch_var_name_to_block_id") == ["shared@PREFETCH:2",
                                                                                  "own@PREFETCH:3"]
    assert job.main._distributed_lookup_table == "shared"


def test_b17_ids_that_agree_in_their_lower_32_bits_are_different_rows():
    job, ids = GrowingJob(2), np.array([[1], [1 + (1 << 32)], [1 - (1 << 32)], [1]])
    job.exe.run(job.main, {**batch(0), **{f"slot{i}": np.tile(ids, (2, 1)) for i in range(3)}}, scope=job.scope)
    assert list(job.rows("own")) == [1 - (1 << 32), 1, 1 + (1 << 32)]
    assert len(set(job.rows("own").values())) == 3


def test_ids_at_the_ends_of_int64_and_the_mark_of_a_free_slot_are_rows():
    alone, job = GrowingJob(None), GrowingJob(3)
    ends = np.array([[-2 ** 63], [2 ** 63 - 1], [-1], [0]] * 2)
    for one in (alone, job):
        one.exe.run(one.main, {**batch(0), **{f"slot{i}": ends for i in range(3)}}, scope=one.scope)
    assert list(job.rows()) == [-2 ** 63, -1, 0, 2 ** 63 - 1] and job.rows() == alone.rows()


def test_b26_an_id_is_stored_with_the_push_that_the_entry_says_and_used_before_it():
    class Counted(GrowingJob):
        def push(self, *ids):
            feed = {**batch(0), **{f"slot{i}": np.resize(np.array(ids) * FAR, (8, 1)) for i in range(3)}}
            return self.exe.run(self.main, feed, [self.guess], scope=self.scope)[0]
    job = Counted(2, entry=CountFilterEntry(3), initializer=fluid.initializer.Normal())
    assert job.push(1, 2).any()
    assert job.rows() == {}
    job.push(1, 3)
    job.push(1, 2)
    assert list(job.rows()) == [FAR]
    job.push(2, 3)
    assert list(job.rows()) == [FAR, 2 * FAR]


def test_b26_the_entry_counts_in_both_lookups_and_its_probability_is_that_of_being_admitted():
    stored = {}
    for probability in (0.2, 0.8):
        job = GrowingJob(2, entry=ProbabilityEntry(probability))
        ids = np.arange(8000).reshape(-1, 1) * FAR
        job.exe.run(job.main, {f"slot{i}": ids for i in range(3)} | {"target": np.zeros((8000, 1), "f")},
                    scope=job.scope)
        stored[probability] = job.state.count("shared") / 8000
    assert abs(stored[0.2] - 0.2) < 0.03 and abs(stored[0.8] - 0.8) < 0.03


@pytest.mark.parametrize("entry", (CountFilterEntry(0), CountFilterEntry(1), ProbabilityEntry(1.0),
                                   ShowClickEntry("show", "click")))
def test_entries_that_admit_everything_have_the_bits_of_none(entry):
    job, plain = GrowingJob(1, entry=entry), GrowingJob(1)
    assert job.run(*STEPS) == plain.run(*STEPS) and job.rows() == plain.rows()


def test_rows_of_padding_are_zeros_and_stay():
    alone, job = (GrowingJob(servers, padding_idx=-3 * FAR) for servers in (None, 2))
    assert job.run(*STEPS) == alone.run(*STEPS)
    assert {one: row for one, row in job.rows().items() if one != -3 * FAR} == {
        one: row for one, row in alone.rows().items() if one != -3 * FAR}


@pytest.mark.parametrize("optimizer, sentence", (
    (lambda: fluid.optimizer.Lamb(0.1), "table 'shared' has a row for any id: a growing table cannot be updated by"),
    (lambda: fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)), "has no decay"),
    (lambda: fluid.optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0)), "norm of a whole table")))
def test_updates_that_concern_rows_which_are_not_stored_are_refused(optimizer, sentence):
    with pytest.raises(UsageError, match=sentence):
        GrowingJob(1, optimizer)


def test_clipping_by_value_goes():
    clipped = lambda: fluid.optimizer.SGD(0.5, grad_clip=fluid.clip.GradientClipByValue(0.01))
    alone, job = GrowingJob(None, clipped), GrowingJob(2, clipped)
    assert job.run(*STEPS) == alone.run(*STEPS) and job.rows() == alone.rows()


def test_more_than_servers_count_is_refused():
    with pytest.raises(UsageError, match="count up to 255, got 300"):
        GrowingJob(1, entry=CountFilterEntry(300))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_in_geo_a_worker_that_is_alone_has_the_bits_of_one_process(name):
    alone = GrowingJob(None, OPTIMIZERS[name])
    losses = alone.run(*STEPS)
    tested = alone.exe.run(alone.test, batch(0), [alone.loss], scope=alone.scope)[0]
    for servers, k_steps in ((1, 1), (3, 3)):
        job = GrowingJob(servers, OPTIMIZERS[name], **GEO, geo_sgd_need_push_nums=k_steps)
        assert job.run(*STEPS) == losses
        np.testing.assert_array_equal(job.exe.run(job.test, batch(0), [job.loss], scope=job.scope)[0], tested)
        sessions.session_of(job.scope).flush()
        for table in ("shared", "own"):
            mine, theirs = job.rows(table), alone.rows(table)
            assert list(mine) == list(theirs)
            for one, row in mine.items():   # w is old + (w - old) here: a last bit may differ
                np.testing.assert_allclose(np.frombuffer(row, "f"), np.frombuffer(theirs[one], "f"), 1e-6, 1e-7)


def test_in_geo_updates_of_rows_are_no_longer_in_the_program():
    job = GrowingJob(2, OPTIMIZERS["adam"], **GEO)
    ops = job.main.global_block().ops
    assert sorted(op.input("Param") for op in ops if op.type == "adam") == [["fc_0.b_0"], ["fc_0.w_0"]]
    assert {op.attrs.get("table", "") for op in ops if op.type == "send"} == {"shared", "own", ""}
    assert not [name for name in job.main.global_block().vars if name.startswith(("shared_moment", "own_moment"))]


def test_in_geo_gradients_are_clipped_by_value_and_entries_are_the_servers():
    said = dict(optimizer=lambda: fluid.optimizer.SGD(0.5, grad_clip=fluid.clip.GradientClipByValue(0.01)))
    alone, job = GrowingJob(None, **said), GrowingJob(2, **said, **GEO, geo_sgd_need_push_nums=4)
    assert job.run(*STEPS) == alone.run(*STEPS)
    counted = GrowingJob(2, entry=CountFilterEntry(2), **GEO, geo_sgd_need_push_nums=1)
    counted.run(0)
    assert counted.rows() == {}
    counted.run(0)
    assert set(counted.rows()) == {int(one) for slot in ("slot0", "slot1") for one in batch(0)[slot].reshape(-1)}


@pytest.mark.parametrize("name", ("sgd", "adam"))
def test_rows_that_were_saved_in_geo_load_anywhere_with_states_that_begin(name, tmp_path):
    job = GrowingJob(2, OPTIMIZERS[name], **GEO, geo_sgd_need_push_nums=3)
    job.run(*STEPS)
    job.save(tmp_path)
    for other in (GrowingJob(None, OPTIMIZERS[name], load=tmp_path), GrowingJob(3, OPTIMIZERS[name], load=tmp_path),
                  GrowingJob(1, OPTIMIZERS[name], **GEO).load(tmp_path),
                  GrowingJob(1, OPTIMIZERS[name], **GEO, load=tmp_path)):
        assert other.rows() == job.rows() and other.rows("own") == job.rows("own")
        assert np.isfinite(np.frombuffer(other.run(5)[0], "f")).all()


@pytest.mark.parametrize("chosen", (dict(runtime_split_send_recv=True), dict(half_async=True),
                                    dict(enable_dc_asgd=True), dict(staleness=0)), ids=str)
def test_modes_in_which_servers_update_store_every_row_once(chosen):
    job = GrowingJob(2, sync_mode=False, **chosen)
    job.run(*STEPS)
    seen = {int(one) for step in STEPS for slot in ("slot0", "slot1") for one in batch(step)[slot].reshape(-1)}
    assert set(job.rows()) == seen
    assert job.state.fetch(StateKey("state", "shared", UPDATES)).item() == len(STEPS)


def test_two_lookups_that_differ_in_what_they_say_of_one_table_are_refused():
    with from_scratch():
        ids = fluid.layers.data("ids", [1], dtype="int64")
        rows = [fluid.contrib.layers.sparse_embedding(ids, [4, WIDTH], param_attr="table", entry=entry)
                for entry in (None, CountFilterEntry(2))]
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.sums(rows)))
        with pytest.raises(UsageError, match="say different things"):
            fluid.DistributeTranspiler().transpile(0, trainers=1)


def test_what_is_logged_and_compared_names_tables_without_a_height():
    job = GrowingJob(2, entry=CountFilterEntry(2))
    assert "shared float32 [-1, 5]: rows for any id, by its hash on every server" in list(
        placement_lines(job.distribution))
    assert "('seen', 2)" in job.distribution.fingerprint()["table"]["own"]


def test_a_test_program_that_was_not_rewritten_reads_the_same_rows():
    alone, job = GrowingJob(None, OPTIMIZERS["adam"]), GrowingJob(2, OPTIMIZERS["adam"])
    found = []
    for one in (alone, job):
        one.run(*STEPS)
        found.append(one.exe.run(one.test, batch(0), [one.loss, one.guess], scope=one.scope))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert job.rows() == alone.rows()   # to look stores nothing


def test_a_program_may_have_nothing_but_such_a_table():
    with from_scratch() as (main, startup):
        ids = fluid.data("ids", [None, 3], "int64")
        rows = fluid.embedding(ids, [-1, WIDTH], is_sparse=True, is_distributed=True, param_attr="table")
        loss = fluid.layers.mean(fluid.layers.square(rows))
        fluid.optimizer.SGD(5.0).minimize(loss)
        fluid.DistributeTranspiler().transpile(0, main, "a:1,b:1", 1, startup_program=startup)
        exe = fluid.Executor()
        exe.run(startup)
        losses = [exe.run(main, {"ids": np.array([[FAR, -1, 2], [3, -FAR, 5]])}, [loss])[0].item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0] / 2
