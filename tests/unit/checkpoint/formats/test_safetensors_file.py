"""safetensors as a format of saves: read by the library's own loader, loaded here bit for bit; damage is a sentence."""

import os
import sys

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.checkpoint import formats
from fleet_mpi.checkpoint.folders import manifest
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles
from fleet_mpi.checkpoint.folders.transaction import saving_into
from fleet_mpi.checkpoint.formats import Value
from fleet_mpi.checkpoint.formats.safetensors_file import SafetensorsFile
from fleet_mpi.errors import CheckpointDamaged, EnvironmentProblem
from fleet_mpi.program.engine.scope import Scope, scope_guard
from tests.unit.checkpoint.test_saving import Training, files
from tests.unit.program.building import from_scratch

NAME = "all.safetensors"
DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64")


@pytest.fixture
def library():
    return pytest.importorskip("safetensors.numpy",
                               reason="safetensors is not installed: pip install '.[export]'")


def test_the_ending_of_a_file_chooses_it():
    assert type(formats.of(NAME)) is SafetensorsFile


def write(folder, values):
    with saving_into(str(folder)) as save:
        formats.of(NAME).write(save, values)


def test_every_type_and_shape_is_read_by_the_library_and_here(library, tmp_path):
    arrays = {f"{dtype}/{shape}": np.ones(shape).astype(dtype) for dtype in DTYPES for shape in ((), (0, 2), (2, 3))}
    arrays["turned"] = np.arange(6.0).reshape(2, 3).T
    values = [Value(name, arrays[name], ((0, 1, 2),) if name == "int64/(2, 3)" else ()) for name in sorted(arrays)]
    write(tmp_path, values)
    found = library.load_file(tmp_path / NAME)
    read = {one.name: one for one in formats.of(NAME).read(SavedFiles(tmp_path), arrays, arrays)}
    assert sorted(found) == sorted(read) == sorted(arrays) == formats.of(NAME).names(SavedFiles(tmp_path))
    for name, array in arrays.items():
        for got in (found[name], read[name].array):
            assert got.dtype == array.dtype and got.shape == array.shape
            np.testing.assert_array_equal(got, array)
    assert [name for name, one in read.items() if one.lod] == ["int64/(2, 3)"]
    assert read["int64/(2, 3)"].lod == ((0, 1, 2),)


@pytest.mark.parametrize("with_servers", (False, True))
def test_a_training_goes_on_from_it(library, tmp_path, with_servers):
    with from_scratch(), scope_guard(Scope()):
        training = Training(with_servers).start().train()
        fluid.io.save_persistables(training.exe, str(tmp_path / "one"), training.program, NAME)
        fluid.io.save_persistables(training.exe, str(tmp_path / "before"), training.program)
        training.train(2)
        fluid.io.load_persistables(training.exe, str(tmp_path / "one"), training.program, NAME)
        fluid.io.save_persistables(training.exe, str(tmp_path / "after"), training.program)
    assert list(files(tmp_path / "one")) == [NAME]
    assert files(tmp_path / "after") == files(tmp_path / "before")


def test_a_missing_variable_is_named(library, tmp_path):
    write(tmp_path, [Value("a", np.ones(2))])
    with pytest.raises(CheckpointDamaged, match="no value for 1 of 2 variables: b"):
        list(formats.of(NAME).read(SavedFiles(tmp_path), ["a", "b"], ["a", "b"]))


@pytest.mark.parametrize("with_manifest, said", ((True, "files are not what was saved"),
                                                 (False, "damaged, or no safetensors file")))
def test_damage_is_a_sentence(library, tmp_path, with_manifest, said):
    write(tmp_path, [Value("a", np.ones(20))])
    os.truncate(tmp_path / NAME, 100)
    if not with_manifest:
        os.remove(manifest.path_in(str(tmp_path)))
    with pytest.raises(CheckpointDamaged, match=said):
        list(formats.of(NAME).read(SavedFiles(tmp_path), ["a"], ["a"]))


def test_without_the_library_the_line_that_installs_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(EnvironmentProblem, match=r"not installed: pip install '\.\[export\]'"):
        write(tmp_path, [Value("a", np.ones(2))])
    assert list(files(tmp_path)) == []
