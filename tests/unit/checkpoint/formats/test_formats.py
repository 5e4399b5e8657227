"""The seam of formats: a name chooses one; a new one is a file and a line, for one process and for servers."""

import os

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.checkpoint import formats
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles
from fleet_mpi.checkpoint.formats.one_file import OneFile
from fleet_mpi.checkpoint.formats.tensor_files import TensorFiles
from fleet_mpi.errors import CheckpointDamaged
from fleet_mpi.program.engine.scope import Scope, scope_guard
from tests.unit.checkpoint.formats.npz import Npz
from tests.unit.checkpoint.test_saving import Training, files
from tests.unit.program.building import from_scratch


@pytest.fixture
def npz(monkeypatch):
    """The line."""
    monkeypatch.setattr(formats, "FORMATS", [Npz, *formats.FORMATS])


@pytest.mark.parametrize("filename, kind", ((None, TensorFiles), ("all", OneFile), ("all.npz", OneFile)))
def test_the_name_of_a_file_chooses_the_format(filename, kind):
    assert type(formats.of(filename)) is kind


def test_the_new_format_is_chosen_by_its_name(npz):
    assert [type(formats.of(name)) for name in (None, "all", "all.npz")] == [TensorFiles, OneFile, Npz]


@pytest.mark.parametrize("with_servers", (False, True))
def test_a_toy_format_saves_and_loads(npz, tmp_path, with_servers):
    with from_scratch(), scope_guard(Scope()):
        training = Training(with_servers).start().train()
        fluid.io.save_persistables(training.exe, str(tmp_path / "toy"), training.program, "all.npz")
        fluid.io.save_persistables(training.exe, str(tmp_path / "before"), training.program)
        training.train(2)
        fluid.io.load_persistables(training.exe, str(tmp_path / "toy"), training.program, "all.npz")
        fluid.io.save_persistables(training.exe, str(tmp_path / "after"), training.program)
    assert list(files(tmp_path / "toy")) == ["all.npz"]
    assert files(tmp_path / "after") == files(tmp_path / "before")
    with np.load(tmp_path / "toy" / "all.npz") as archive:
        assert sorted(archive.files) == sorted(files(tmp_path / "before")) == Npz("all.npz").names(
            SavedFiles(tmp_path / "toy"))


def test_a_damaged_file_of_the_toy_format_is_refused_by_the_manifest(npz, tmp_path):
    with from_scratch(), scope_guard(Scope()):
        training = Training(False).start()
        fluid.io.save_persistables(training.exe, str(tmp_path), training.program, "all.npz")
        os.truncate(tmp_path / "all.npz", 100)
        with pytest.raises(CheckpointDamaged, match="1 of 1 files are not what was saved: all.npz"):
            fluid.io.load_persistables(training.exe, str(tmp_path), training.program, "all.npz")


def test_a_toy_format_gives_the_state_of_a_program_by_its_own_names(npz, tmp_path):
    with from_scratch(), scope_guard(Scope()):
        training = Training(False).start()
        fluid.io.save_params(training.exe, str(tmp_path), training.program, "all.npz")
        state = fluid.io.load_program_state(str(tmp_path / "all.npz"))
        assert sorted(state) == sorted(param.name for param in training.program.all_parameters())
