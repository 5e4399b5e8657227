"""What a folder holds is found without naming files; what cannot be read is a sentence."""

import os

import numpy as np
import pytest

from fleet_mpi import fluid, paddle
from fleet_mpi.checkpoint.folders import manifest
from fleet_mpi.errors import CheckpointDamaged, CheckpointMissing, UsageError
from fleet_mpi.export.saved_model import read_saved


@pytest.fixture
def exe():
    """An executor; the default program is y = fc(x) with Adam, and initialised."""
    x = fluid.layers.data("x", [3])
    y = fluid.layers.fc(x, 2, param_attr="below/w", bias_attr="b")
    fluid.default_main_program().y = y
    fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(y))
    made = fluid.Executor()
    made.run(fluid.default_startup_program())
    return made


def target():
    return fluid.default_main_program().y


def value(name):
    return fluid.global_scope().find_var(name).get_tensor().numpy()


def save_model(exe, folder, **names):
    fluid.io.save_inference_model(str(folder), ["x"], [target()], exe, **names)


def assert_is_the_model(saved):
    assert [one.name for one in saved.values] == ["b", "below/w"]
    np.testing.assert_array_equal(saved.values[1].array, value("below/w"))
    assert (saved.feeds, saved.fetches) == (("x",), (target().name,)) and saved.program is not None


@pytest.mark.parametrize("with_manifest", (True, False))
@pytest.mark.parametrize("names", ({}, {"params_filename": "all"}, {"model_filename": "net", "params_filename": "all"},
                                   {"model_filename": "net"}))
def test_both_layouts_of_a_model_are_read(exe, tmp_path, names, with_manifest):
    save_model(exe, tmp_path, **names)
    if not with_manifest:
        os.remove(manifest.path_in(str(tmp_path)))
    assert_is_the_model(read_saved(str(tmp_path)))


def test_models_of_2x_are_read_by_folder_or_path(exe, tmp_path):
    x = fluid.default_main_program().global_block().var("x")
    paddle.static.save_inference_model(str(tmp_path / "one"), [x], [target()], exe)
    assert_is_the_model(read_saved(str(tmp_path)))
    paddle.static.save_inference_model(str(tmp_path / "two"), [x], [target()], exe)
    assert_is_the_model(read_saved(str(tmp_path / "two")))
    with pytest.raises(UsageError, match="holds 2 programs; give the path of one: .*/one, .*/two$"):
        read_saved(str(tmp_path))


def test_what_was_exported_into_the_folder_does_not_belong_to_the_model(exe, tmp_path):
    save_model(exe, tmp_path, params_filename="all")
    (tmp_path / "model.onnx").write_bytes(b"x")
    assert_is_the_model(read_saved(str(tmp_path)))


def test_variables_without_a_program_are_read_by_name(exe, tmp_path):
    fluid.io.save_params(exe, str(tmp_path / "params"))
    fluid.io.save_persistables(exe, str(tmp_path / "all"))
    params, everything = read_saved(str(tmp_path / "params")), read_saved(str(tmp_path / "all"))
    assert [one.name for one in params.values] == ["b", "below/w"] and params.program is None
    assert {"b", "below/w", "b_moment1_0"} < {one.name for one in everything.values}


def test_a_state_under_one_path_is_read(exe, tmp_path):
    fluid.save(fluid.default_main_program(), str(tmp_path / "state"))
    for path in (tmp_path, tmp_path / "state"):
        names = {one.name for one in read_saved(str(path)).values}
        assert {"b", "below/w", "b_moment1_0"} < names


def test_one_file_of_variables_is_read_where_it_names_them_or_is_one(exe, tmp_path):
    pytest.importorskip("safetensors", reason="safetensors is not installed: pip install '.[export]'")
    fluid.io.save_params(exe, str(tmp_path / "named"), filename="all.safetensors")
    assert [one.name for one in read_saved(str(tmp_path / "named")).values] == ["b", "below/w"]


def test_one_variable_is_no_file_of_several(exe, tmp_path):
    fluid.io.save_vars(exe, str(tmp_path / "one"), vars=["b"])
    assert [one.name for one in read_saved(str(tmp_path / "one")).values] == ["b"]
    fluid.io.save_params(exe, str(tmp_path / "nameless"), filename="all")
    with pytest.raises(UsageError, match="nameless/all holds 2 variables without their names; export the model"):
        read_saved(str(tmp_path / "nameless"))


def test_missing_folders_are_named(tmp_path):
    with pytest.raises(CheckpointMissing, match="no such folder; nothing was saved there"):
        read_saved(str(tmp_path / "nowhere"))
    with pytest.raises(CheckpointMissing, match="an empty folder; nothing was saved there"):
        read_saved(str(tmp_path))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CheckpointMissing, match="a file, not a folder"):
        read_saved(str(tmp_path / "file"))


@pytest.mark.parametrize("damage, said", (
    (lambda folder: os.truncate(folder / "__model__", 100), "files are not what was saved: __model__"),
    (lambda folder: os.truncate(folder / "b", 10), "files are not what was saved: b"),
    (lambda folder: os.remove(folder / "b"), "no file for 1 of 2 variables: b")))
def test_damaged_models_are_named(exe, tmp_path, damage, said):
    save_model(exe, tmp_path)
    damage(tmp_path)
    with pytest.raises(CheckpointDamaged, match=said):
        read_saved(str(tmp_path))


def test_a_model_of_the_original_is_no_program(tmp_path):
    (tmp_path / "__model__").write_bytes(b"\x0a\x9b\x02")
    with pytest.raises(CheckpointDamaged, match="this is no fleet_mpi program"):
        read_saved(str(tmp_path))


def test_variables_of_another_program_do_not_fit(exe, tmp_path):
    save_model(exe, tmp_path)
    fluid.global_scope().find_var("b").get_tensor().set(np.zeros(7, "float32"))
    fluid.io.save_vars(exe, str(tmp_path), vars=["b"])
    with pytest.raises(CheckpointDamaged, match=r"do not fit this program: b: program float32\[2\], file float32\[7\]"):
        read_saved(str(tmp_path))


def test_several_files_beside_a_program_are_not_guessed_at(exe, tmp_path):
    save_model(exe, tmp_path, params_filename="all")
    fluid.io.save_vars(exe, str(tmp_path), vars=["below/w"], filename="other")
    with pytest.raises(UsageError, match="which file holds the variables of __model__.*found all, other"):
        read_saved(str(tmp_path))


def test_blocks_that_servers_saved_are_whole_variables(tmp_path):
    from fleet_mpi.checkpoint.folders.transaction import saving_into
    from fleet_mpi.checkpoint.formats.tensor_files import TensorFiles
    rows = np.arange(10, dtype="float32").reshape(5, 2)
    with saving_into(str(tmp_path)) as save:
        for block, (first, count) in enumerate(((0, 3), (3, 2))):
            TensorFiles().write_block(save, "w", block, [(0, 3), (3, 2)], rows[first:first + count])
    one, = read_saved(str(tmp_path)).values
    assert one.name == "w"
    np.testing.assert_array_equal(one.array, rows)
