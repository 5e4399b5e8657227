"""Damaged files, foreign names and disks that refuse: always a sentence with the path, never a traceback or a wrong
place."""

import errno
import io
import os
import random

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.checkpoint import objects
from fleet_mpi.checkpoint.folders import manifest, transaction
from fleet_mpi.checkpoint.folders.replacing import replacing
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles
from fleet_mpi.checkpoint.folders.transaction import saving_into
from fleet_mpi.checkpoint.folders.versions import save as save_version
from fleet_mpi.checkpoint.formats.tensor_stream import read_rows, read_tensor, write_rows, write_tensor
from fleet_mpi.checkpoint.loading import load_persistables, load_vars
from fleet_mpi.checkpoint.models.inference_model import load_inference_model
from fleet_mpi.checkpoint.saving import save_inference_model, save_persistables, save_vars
from fleet_mpi.errors import CheckpointDamaged, CheckpointMissing, EnvironmentProblem, StorageProblem, UsageError
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import Program, default_main_program
from fleet_mpi.program.graph.serialize import MAGIC, VERSION
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc


def with_variables(*names):
    """A program with some persistable variables that have values."""
    program = Program()
    for name in names:
        program.global_block().create_var(name=name, shape=[2], persistable=True)
        global_scope().var(name).get_tensor().set(np.ones(2, "float32"))
    return program


# ---------------------------------------------------------------------- names

OUTSIDE = ("../w", "a/../../w", "/tmp/w", "..", ".", "a//w", "a/", "w\0", manifest.NAME,
           ".save.0123456789abcdef.part/w")


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_leads_out_of_the_folder_is_refused_and_nothing_is_written(tmp_path, name):
    with pytest.raises(UsageError, match=r"cannot be the name of a file in '[^']*/folder':"):
        save_persistables(None, str(tmp_path / "folder"), with_variables(name, "good"))
    with pytest.raises(UsageError, match="cannot be the name of a file in"):
        save_persistables(None, str(tmp_path / "folder"), with_variables("good"), filename=name)
    assert os.listdir(tmp_path) == ["folder"] and os.listdir(tmp_path / "folder") == []


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_from_a_foreign_model_is_not_looked_for_elsewhere(tmp_path, name):
    with pytest.raises(CheckpointDamaged, match="cannot be the name of a file in"):
        load_persistables(None, str(tmp_path), with_variables(name))
    with pytest.raises(UsageError, match="cannot be the name of a file in"):
        load_persistables(None, str(tmp_path), with_variables("good"), filename=name)


def test_a_link_to_another_folder_is_not_followed_when_saving(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "folder" / "a").symlink_to(tmp_path / "outside")
    with pytest.raises(UsageError, match="'a/w' would lie outside, since .* is a link"):
        save_persistables(None, str(tmp_path / "folder"), with_variables("a/w"))
    assert os.listdir(tmp_path / "outside") == [] and os.listdir(tmp_path / "folder") == ["a"]


def test_the_files_of_a_model_lie_in_its_folder_whatever_path_they_are_given(tmp_path):
    out = fc(data(name="x", shape=[3]), 2)
    for param in default_main_program().all_parameters():
        global_scope().var(param.name).get_tensor().set(np.ones(param.shape, "float32"))
    save_inference_model(str(tmp_path), ["x"], [out], None, model_filename="/elsewhere/m", params_filename="../p")
    assert sorted(os.listdir(tmp_path)) == [manifest.NAME, "m", "p"]
    assert load_inference_model(str(tmp_path), None, "/elsewhere/m", "../p")[1] == ["x"]


# ---------------------------------------------------------------------- what is missing, what is damaged

def test_a_missing_folder_is_missing_and_not_damaged(tmp_path):
    for load in (lambda: load_persistables(None, str(tmp_path / "no"), with_variables("w")),
                 lambda: load_inference_model(str(tmp_path / "no"), None),
                 lambda: load_vars(None, str(tmp_path / "no"), with_variables("w"), filename="all")):
        with pytest.raises(CheckpointMissing, match="no': no such folder") as raised:
            load()
        assert isinstance(raised.value, FileNotFoundError) and raised.value.exit_code == 2
    with pytest.raises(CheckpointMissing, match="no such file"):
        load_inference_model(str(tmp_path), None)
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointMissing, match="a file, not a folder"):
        load_persistables(None, str(tmp_path / "file"), with_variables("w"))


@pytest.fixture
def model(tmp_path):
    """A folder with a saved model and no manifest, so that its files must speak for themselves."""
    out = fc(fc(data(name="x", shape=[3]), 4, act="relu"), 2)
    for param in default_main_program().all_parameters():
        global_scope().var(param.name).get_tensor().set(np.ones(param.shape, "float32"))
    save_inference_model(str(tmp_path), ["x"], [out], None)
    os.remove(tmp_path / manifest.NAME)
    return tmp_path


def damaged(content, rng):
    """Some bytes changed, cut off, or added."""
    changed = bytearray(content)
    kind = rng.randrange(3)
    if kind == 0:
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del changed[rng.randrange(len(changed)):]
    else:
        at = rng.randrange(len(changed))
        changed[at:at] = rng.randbytes(rng.randint(1, 9))
    return bytes(changed)


def test_every_damage_to_a_model_file_is_noticed(model):
    content, rng = (model / "__model__").read_bytes(), random.Random(1)
    for _ in range(300):
        (model / "__model__").write_bytes(damaged(content, rng))
        with pytest.raises(CheckpointDamaged, match="__model__"):
            load_inference_model(str(model), None)


def test_models_without_a_checksum_load_or_are_refused_by_a_sentence(model):
    content, rng = (model / "__model__").read_bytes(), random.Random(2)
    content = MAGIC + b"1\n" + content.partition(b"\n")[2]
    refused = 0
    for _ in range(300):
        (model / "__model__").write_bytes(damaged(content, rng))
        try:
            load_inference_model(str(model), None)
        except CheckpointDamaged:
            refused += 1
    assert refused > 150
    (model / "__model__").write_bytes(content)
    assert load_inference_model(str(model), None)[1] == ["x"]


@pytest.mark.parametrize("old, new, words", [
    (b'"fetches":', b'"patches":', "not written by save_inference_model.*fetches None"),
    (b'"feeds":["x"]', b'"feeds":["z"]', "not written by save_inference_model"),
    (b'"Out":', b'"In":', "has no output 'In'"),
    (b'"seed":0', b'"seed":1e999', "OverflowError"),
    (b'"parent":-1', b'"parent":0', "block 0 is within block 0"),
    (b'"op_role":0', b'"sub_block":7', "there is no block 7"),
    (b'{"seed"', b"[" * 100000 + b'{"seed"', "RecursionError"),
])
def test_a_forged_model_is_a_sentence(model, old, new, words):
    content = (model / "__model__").read_bytes().partition(b"\n")[2]
    assert old in content and VERSION == 2
    (model / "__model__").write_bytes(MAGIC + b"1\n" + content.replace(old, new))
    with pytest.raises(CheckpointDamaged, match=words):
        load_inference_model(str(model), None)


@pytest.mark.parametrize("write, read", [
    (lambda stream: write_tensor(stream, np.arange(12.0).reshape(3, 4), ((0, 1, 3),)), read_tensor),
    (lambda stream: write_rows(stream, Rows(np.array([1, 5]), np.ones((2, 3), "float32"), 9)), read_rows)])
def test_damaged_tensors_are_read_or_refused_by_a_sentence(write, read):
    stream, rng, refused = io.BytesIO(), random.Random(3), 0
    write(stream)
    for _ in range(2000):
        try:
            read(io.BytesIO(damaged(stream.getvalue(), rng)))
        except CheckpointDamaged:
            refused += 1
    assert refused > 300


def test_every_damage_to_a_file_that_the_manifest_knows_is_noticed(tmp_path):
    program, rng = with_variables("w"), random.Random(4)
    save_persistables(None, str(tmp_path), program)
    content = (tmp_path / "w").read_bytes()
    for _ in range(200):
        (tmp_path / "w").write_bytes(damaged(content, rng))
        with pytest.raises(CheckpointDamaged, match="1 of 1 files are not what was saved: w"):
            load_persistables(None, str(tmp_path), program)


def test_damaged_archives_are_read_or_refused_by_a_sentence(tmp_path):
    path, rng, refused = tmp_path / "state.pdparams", random.Random(5), 0
    objects.save({"w": np.arange(3.0), "opt": {"step": 4, "m": np.ones((2, 2))}}, str(path))
    content = path.read_bytes()
    for _ in range(300):
        path.write_bytes(damaged(content, rng))
        try:
            objects.load(str(path))
        except CheckpointDamaged as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > 200
    with pytest.raises(CheckpointMissing, match="no such file"):
        objects.load(str(tmp_path / "no"))


# ---------------------------------------------------------------------- disks that refuse

class Refusing(io.FileIO):
    """A file on a disk that takes no more."""

    number = errno.ENOSPC

    def write(self, data):
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize("number, words", [
    (errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "the quota"), (errno.EIO, "Input/output error")])
def test_a_disk_that_takes_no_more_is_said_with_the_folder_and_loses_nothing(tmp_path, monkeypatch, number, words):
    program = with_variables("w", "v")
    save_persistables(None, str(tmp_path), program)
    monkeypatch.setattr(Refusing, "number", number)
    monkeypatch.setattr(transaction, "open", Refusing, raising=False)
    with pytest.raises(StorageProblem, match=f"save into '{tmp_path}': {words}") as raised:
        save_persistables(None, str(tmp_path), program)
    assert isinstance(raised.value, EnvironmentProblem) and raised.value.exit_code == 3
    monkeypatch.undo()
    assert sorted(os.listdir(tmp_path)) == [manifest.NAME, "v", "w"]
    load_persistables(None, str(tmp_path), program)


@pytest.mark.parametrize("number, words", [
    (errno.EROFS, "the file system is read-only"), (errno.EACCES, "permission denied to this user")])
def test_a_folder_that_may_not_be_written_is_said(tmp_path, monkeypatch, number, words):
    def refuse(path, *mode):
        raise OSError(number, os.strerror(number), path)
    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(StorageProblem, match=f"save into .*{tmp_path}.*{words}"):
        save_persistables(None, str(tmp_path), with_variables("w"))
    with pytest.raises(StorageProblem, match=words):
        save_version(str(tmp_path), 3, lambda path: None)


def test_a_file_where_a_folder_should_be_and_a_folder_where_a_file_should_be_are_said(tmp_path):
    (tmp_path / "file").touch()
    for save in (lambda: save_persistables(None, str(tmp_path / "file"), with_variables("w")),
                 lambda: save_persistables(None, str(tmp_path / "file" / "below"), with_variables("w")),
                 lambda: save_persistables(None, str(tmp_path), with_variables("a", "a/b")),
                 lambda: save_persistables(None, str(tmp_path), with_variables("file/b")),
                 lambda: objects.save({"w": 1}, str(tmp_path / "file" / "state"))):
        with pytest.raises(StorageProblem, match="a file where a folder should be"):
            save()
    (tmp_path / "w").mkdir()
    with pytest.raises(StorageProblem, match="there is a folder where the file"):
        save_vars(None, str(tmp_path), with_variables("w"))
    with pytest.raises(StorageProblem, match="there is a folder where the file"), replacing(tmp_path / "w") as stream:
        stream.write(b"content")
    assert sorted(os.listdir(tmp_path)) == ["file", "w"]


def test_a_name_that_is_too_long_is_said(tmp_path):
    with pytest.raises(StorageProblem, match="the name is longer than the file system allows.*filename="):
        save_persistables(None, str(tmp_path), with_variables("w" * 300))
    save_persistables(None, str(tmp_path), with_variables("w" * 255))
    with pytest.raises(CheckpointDamaged, match="no file for 1 of 1 variables"):
        load_persistables(None, str(tmp_path), with_variables("w" * 300))


def test_an_error_that_comes_after_the_save_counts_says_so(tmp_path, monkeypatch):
    with saving_into(tmp_path) as save, save.open("w") as stream:
        stream.write(b"old")
    replace = os.replace

    def refuse(source, target):
        if os.path.basename(target) == "w":
            raise OSError(errno.EIO, os.strerror(errno.EIO), target)
        replace(source, target)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(StorageProblem, match="The save is complete and can be loaded"):
        with saving_into(tmp_path) as save, save.open("w") as stream:
            stream.write(b"new")
    assert SavedFiles(tmp_path).read("w") == b"new"
