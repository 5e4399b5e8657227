"""A training that makes room: saved when asked, resumed to the same bits; here with one worker."""

import json
import os
import signal
import sys

import numpy as np
import pytest

from fleet_mpi.checkpoint.loading import load_persistables
from fleet_mpi.checkpoint.saving import save_persistables
from fleet_mpi.errors import CheckpointDamaged
from fleet_mpi.fleet import preemption
from fleet_mpi.fleet.preemption import Preemption
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, scope_guard
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.optimizers.plain import Adam
from fleet_mpi.ranks import ending

STEPS = 12


@pytest.fixture(autouse=True)
def as_before():
    """Signals and what was agreed on are the process's own."""
    yield
    preemption.release()
    ending.agree(0)


@pytest.fixture
def trained(loss, tmp_path):
    """Train in a new scope, as a new process would; returns (first step, the Preemption, parameters)."""
    Adam(learning_rate=0.1).minimize(loss)

    def trained(asked_after=None):
        executor, scope = Executor(), Scope()
        with scope_guard(scope), Preemption(tmp_path, lambda path: save_persistables(executor, path),
                                            lambda path: load_persistables(executor, path)) as keeping:
            executor.run(default_startup_program())
            first = keeping.resume()
            for step in range(first, STEPS):
                rows = np.random.default_rng(step).normal(size=(8, 4)).astype("float32")
                executor.run(feed={"x": rows, "y": rows.sum(1, keepdims=True)}, fetch_list=[loss])
                if step + 1 == asked_after:
                    os.kill(os.getpid(), signal.SIGUSR1)
                if keeping.stopping(step + 1):
                    break
            values = {one.name: scope.array(one.name).copy() for one in default_main_program().all_parameters()}
        return first, keeping, values
    return trained


def test_a_training_that_was_stopped_ends_with_the_bits_of_one_that_was_not(trained, tmp_path):
    _, keeping, whole = trained()
    assert keeping.stopped_after is None and not os.listdir(tmp_path)
    first, keeping, _ = trained(asked_after=5)
    assert (first, keeping.stopped_after, os.listdir(tmp_path)) == (0, 5, ["step-5"])
    with pytest.raises(ending.LEAVING) as left:
        keeping.leave_if_stopped()
    assert left.value.code == 75
    preemption.release()
    first, keeping, resumed = trained()
    assert (first, keeping.stopped_after) == (5, None)
    assert all(np.array_equal(resumed[name], whole[name]) for name in whole)
    keeping.leave_if_stopped()


def test_without_a_wish_nothing_is_saved_and_nobody_leaves(trained, tmp_path):
    _, keeping, _ = trained()
    keeping.leave_if_stopped()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("counts, expected", (([7], 7), ([9, 8], 9), ([None], sys.maxsize)))
def test_a_worker_goes_on_where_it_was_and_other_numbers_of_workers_where_the_first_was(tmp_path, counts, expected):
    (tmp_path / "step-9").mkdir()
    (tmp_path / "step-9" / "__steps__").write_text(json.dumps(counts))
    loaded = []
    assert Preemption(tmp_path, None, loaded.append).resume() == expected
    assert loaded == [str(tmp_path / "step-9")]


@pytest.mark.parametrize("content", (None, "[", "{}", "[]", '["x"]'))
def test_a_version_without_its_steps_is_called_damaged(tmp_path, content):
    (tmp_path / "step-9").mkdir()
    if content is not None:
        (tmp_path / "step-9" / "__steps__").write_text(content)
    with pytest.raises(CheckpointDamaged, match="cannot read the steps of its workers"):
        Preemption(tmp_path, None, lambda path: None).resume()
