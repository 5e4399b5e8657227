"""Checkpoints of the collective fleet: numbered, whole, and the newest is loaded."""

import json
import os

import numpy as np
import pytest

from fleet_mpi.checkpoint.folders import manifest
from fleet_mpi.checkpoint.folders.local_files import LocalFS
from fleet_mpi.errors import CheckpointDamaged, NotBuilt, UsageError
from fleet_mpi.fleet import collective_checkpoints
from fleet_mpi.fleet.collective_checkpoints import TrainStatus
from fleet_mpi.fleet.facade import CollectiveFleet
from fleet_mpi.fleet.role_makers import UserDefinedCollectiveRoleMaker
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.optimizers.plain import Momentum

NAMES = [f"__paddle_fleet_checkpoint__.{number}" for number in range(4)]


@pytest.fixture
def fleet(loss, train):
    """A fleet that has trained a few steps."""
    fleet = CollectiveFleet()
    fleet.init()
    fleet.distributed_optimizer(Momentum(0.05, 0.9)).minimize(loss)
    train(fleet.main_program, fleet.startup_program, loss)
    return fleet


def state():
    """Copies of all that persists in the scope."""
    return {name: np.array(global_scope().array(name)) for name in ("fc_0.w_0", "fc_0.b_0", "fc_0.w_0_velocity_0")}


def test_a_checkpoint_gives_back_parameters_optimizer_state_and_pass(tmp_path, fleet):
    saved = state()
    assert fleet.save_check_point(Executor(), str(tmp_path), TrainStatus(3)) == 0
    assert sorted(os.listdir(tmp_path / NAMES[0])) == [manifest.NAME, "_paddle_fleet_param__", "fleet_train_status"]
    assert json.loads((tmp_path / NAMES[0] / "fleet_train_status").read_text()) == {"epoch_no": 3}
    for name in saved:
        global_scope().array(name)[...] = 0
    status = fleet.load_check_point(Executor(), str(tmp_path), trainer_id=0)
    assert status == TrainStatus(3) and status.next() == 4
    assert all((value == saved[name]).all() for name, value in state().items())


def test_the_newest_checkpoint_is_loaded_and_older_ones_can_be_removed(tmp_path, fleet):
    for number in range(3):
        fleet.save_check_point(None, str(tmp_path), TrainStatus(number), fs=LocalFS())
    (tmp_path / (NAMES[3] + ".tmp")).mkdir()
    (tmp_path / "notes").mkdir()
    assert fleet.load_check_point(None, str(tmp_path)) == TrainStatus(2)
    fleet.clean_redundant_check_points(str(tmp_path), checkpoint_num=2)
    assert sorted(os.listdir(tmp_path)) == [*NAMES[1:3], "notes"]
    fleet.save_check_point(None, str(tmp_path), TrainStatus(9), remain_all_checkpoint=False)
    assert sorted(os.listdir(tmp_path)) == [NAMES[3], "notes"]


def test_where_there_is_no_checkpoint_training_begins_at_its_beginning(tmp_path, fleet):
    assert fleet.load_check_point(None, str(tmp_path / "nowhere")) is None
    assert TrainStatus().next() == 0
    with pytest.raises(UsageError, match="there is no checkpoint in "):
        fleet.load_check_point(None, str(tmp_path), ignore_empty=False)


def test_a_checkpoint_that_was_not_finished_does_not_count(tmp_path, fleet, monkeypatch):
    fleet.save_check_point(None, str(tmp_path), TrainStatus(0))
    monkeypatch.setattr(LocalFS, "rename", lambda *paths: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fleet.save_check_point(None, str(tmp_path), TrainStatus(1))
    assert fleet.load_check_point(None, str(tmp_path)) == TrainStatus(0)
    monkeypatch.undo()
    assert fleet.save_check_point(None, str(tmp_path), TrainStatus(1)) == 1


def test_only_worker_0_writes_and_removes(tmp_path, fleet):
    fleet.save_check_point(None, str(tmp_path), TrainStatus(0))
    other, program = UserDefinedCollectiveRoleMaker(1, ["a:1", "b:1"]), fleet.main_program
    assert collective_checkpoints.save(other, str(tmp_path), TrainStatus(1), program, keeps_all=False) is None
    collective_checkpoints.clean(other, str(tmp_path))
    assert os.listdir(tmp_path) == NAMES[:1]


def test_what_cannot_be_read_or_meant_is_refused(tmp_path, fleet):
    fleet.save_check_point(None, str(tmp_path), TrainStatus(0))
    (tmp_path / NAMES[0] / "fleet_train_status").write_text("{}")
    with pytest.raises(CheckpointDamaged,
                       match="cannot read how far training was: KeyError.*take the checkpoint before"):
        fleet.load_check_point(None, str(tmp_path))
    with pytest.raises(UsageError, match="expected a TrainStatus, got int"):
        fleet.save_check_point(None, str(tmp_path), 3)
    with pytest.raises(NotBuilt, match="expected fs=LocalFS.., got str"):
        fleet.load_check_point(None, str(tmp_path), fs="hdfs")
