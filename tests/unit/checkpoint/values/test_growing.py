"""Tables that grow are saved as one process saves them, and loaded by any number of servers, or one process."""

import shutil

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.checkpoint import loading, saving
from fleet_mpi.checkpoint.folders import manifest
from fleet_mpi.checkpoint.models.inference_model import load_inference_model
from fleet_mpi.checkpoint.values import BlockValues
from fleet_mpi.checkpoint.values.growing import GrowingColumns
from fleet_mpi.errors import CheckpointDamaged, UsageError
from fleet_mpi.parameter_server.description import StateKey
from fleet_mpi.parameter_server.tables.base import SCORES, UPDATES
from fleet_mpi.program.engine.scope import Scope, scope_guard
from tests.unit.growing_program import GrowingJob, batch


def adam():
    """An optimizer with states of rows and of the table."""
    return fluid.optimizer.Adam(0.1)


def contents(folder):
    """{name: bytes} of the files of a save."""
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file() and one.name != manifest.NAME}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Folders after two steps, by who saved, and the losses and rows of the two steps that follow."""
    folder, found = tmp_path_factory.mktemp("saved"), []
    for servers in (None, 1, 3):
        job = GrowingJob(servers, adam)
        job.run(0, 1)
        job.save(folder / str(servers))
        found.append((job.run(2, 3), job.rows(), job.rows("own")))
    assert found[0] == found[1] == found[2]
    return folder, found[0]


def goes_on(job):
    return job.run(2, 3), job.rows(), job.rows("own")


@pytest.mark.parametrize("saved", (None, 1, 3))
@pytest.mark.parametrize("loaded", (None, 1, 2, 4))
def test_b28_any_layout_loads_what_any_other_saved_with_equal_bits(undisturbed, saved, loaded):
    folder, expected = undisturbed
    assert goes_on(GrowingJob(loaded, adam, load=folder / str(saved))) == expected
    job = GrowingJob(loaded, adam)
    job.run(7, 8)   # rows that the load must forget
    assert goes_on(job.load(folder / str(saved))) == expected


def test_the_files_are_the_same_for_any_number_of_servers(undisturbed):
    assert contents(undisturbed[0] / "1") == contents(undisturbed[0] / "3")


@pytest.mark.parametrize("filename", ("all", "all.npz"))
def test_one_file_for_all_serves_as_well(tmp_path, undisturbed, filename):
    job = GrowingJob(2, adam)
    job.run(0, 1)
    job.save(tmp_path, filename)
    assert goes_on(GrowingJob(3, adam).load(tmp_path, filename)) == undisturbed[1]
    assert goes_on(GrowingJob(None, adam).load(tmp_path, filename)) == undisturbed[1]


def test_scores_come_back_and_rows_without_are_as_good_as_new(tmp_path):
    job = GrowingJob(2)
    job.run(0)
    job.state.shrink("shared", "unseen", 9)
    job.run(1)
    expected = job.state.fetch(StateKey("state", "shared", SCORES))
    assert set(expected) == {0, 1}
    job.save(tmp_path)
    for servers in (1, 3):
        for other in (GrowingJob(servers, load=tmp_path), GrowingJob(servers).load(tmp_path)):
            np.testing.assert_array_equal(other.state.fetch(StateKey("state", "shared", SCORES)), expected)
            assert other.state.fetch(StateKey("state", "shared", UPDATES)).item() == 2
    for name in ("shared@SCORES", "shared@UPDATES"):
        (tmp_path / name).unlink()
    state = GrowingJob(2).load(tmp_path).state
    assert set(state.fetch(StateKey("state", "shared", SCORES))) == {0}


def test_a_table_that_nothing_was_stored_of_is_saved_and_loaded(tmp_path):
    GrowingJob(2, adam).save(tmp_path)
    for servers in (None, 1, 3):
        job = GrowingJob(servers, adam)
        job.run(0)
        assert job.load(tmp_path).rows() == {}


def test_b50_a_save_leaves_no_table_with_the_worker(tmp_path):
    job = GrowingJob(2, adam)
    job.run(0, 1)
    job.save(tmp_path)
    assert [job.scope.array(name) for name in ("shared", "own", "shared_moment1_0")] == [None] * 3


def test_what_was_trained_on_servers_is_a_model_for_one_process(tmp_path):
    job = GrowingJob(2, adam)
    job.run(0, 1, 2)
    with scope_guard(job.scope):
        saving.save_inference_model(str(tmp_path), ["slot0", "slot1", "slot2"], [job.guess], None, job.main)
    assert not {one.name for one in tmp_path.iterdir()} & {"shared_moment1_0", "shared@SCORES"}
    alone = GrowingJob(None, adam)
    alone.run(0, 1, 2)
    feed = {name: array for name, array in batch(1).items() if name != "target"}
    expected = alone.exe.run(alone.test, batch(1), [alone.guess], scope=alone.scope)[0]
    with scope_guard(Scope()):
        program, names, targets = load_inference_model(str(tmp_path), fluid.Executor())
        np.testing.assert_array_equal(fluid.Executor().run(program, {name: feed[name] for name in names}, targets)[0],
                                      expected)


def test_b43_a_save_that_breaks_off_leaves_the_one_before(tmp_path, monkeypatch):
    job = GrowingJob(2, adam)
    job.run(0)
    job.save(tmp_path)
    before = contents(tmp_path)
    job.run(1)
    rows = job.rows()

    def break_off(table, save, fetch):
        raise OSError("no space left")
    monkeypatch.setattr(GrowingColumns, "write_beside", break_off)
    with pytest.raises(OSError, match="no space left"):
        job.save(tmp_path)
    assert contents(tmp_path) == before and job.rows() == rows


@pytest.mark.parametrize("name", ("shared", "shared@KEYS", "shared_moment1_0", "shared@INDEX"))
def test_files_of_different_saves_are_refused_and_nothing_changes(tmp_path, name):
    short, long = GrowingJob(2, adam), GrowingJob(2, adam)
    short.save(tmp_path / "short")
    long.run(0, 1)
    long.save(tmp_path / "long")
    (tmp_path / "long" / manifest.NAME).unlink()
    if name.endswith("@INDEX"):
        (tmp_path / "short" / manifest.NAME).unlink()
        shutil.copy(tmp_path / "long" / name, tmp_path / "short" / name)
    else:
        shutil.copy(tmp_path / "short" / name, tmp_path / "long" / name)
    wrong, job = tmp_path / ("short" if name.endswith("@INDEX") else "long"), GrowingJob(3, adam)
    job.run(5)
    rows = job.rows()
    with pytest.raises(CheckpointDamaged, match="shared"):
        job.load(wrong)
    assert job.rows() == rows
    with pytest.raises(CheckpointDamaged, match="shared"):
        GrowingJob(2, adam, load=wrong)


def test_parameters_are_loaded_with_the_ids_of_a_table_whose_rule_has_no_states(tmp_path):
    job = GrowingJob(2)
    job.run(1, 2)
    with scope_guard(job.scope):
        saving.save_params(None, str(tmp_path), job.main)
    rows = job.rows()
    job.run(7, 8)   # rows that the load must forget
    assert job.rows() != rows
    with scope_guard(job.scope):
        loading.load_params(None, str(tmp_path), job.main)
    assert job.rows() == rows


def test_some_columns_of_a_table_are_not_loaded(tmp_path):
    job = GrowingJob(1, adam)
    job.run(1)
    job.save(tmp_path)
    with scope_guard(job.scope), pytest.raises(UsageError, match="'shared', which grows.*lack.*load_persistables"):
        loading.load_params(None, str(tmp_path), job.main)


def test_a_server_that_is_to_save_its_rows_says_who_does(tmp_path):
    job = GrowingJob(2)
    values = BlockValues(job.distribution, 0, Scope())
    with pytest.raises(UsageError, match="'shared' has a row for any id, of which this server has some"):
        saving.save_all(values, str(tmp_path))
