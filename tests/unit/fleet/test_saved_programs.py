"""Saved programs: read, written under another name, compared, tried with data, drawn."""

from types import SimpleNamespace

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import CheckpointMissing, UsageError
from fleet_mpi.fleet import saved_programs


@pytest.fixture
def model(tmp_path):
    x = fluid.data("x", [None, 3])
    out = fluid.layers.fc(x, 2, param_attr="w", bias_attr=False)
    fluid.Executor().run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [out], fluid.Executor(), params_filename="params")
    return tmp_path, out.name


def config(folder, out, **feeds):
    return SimpleNamespace(
        dump_model_dir=str(folder), dump_program_filename="__model__", save_params_filename="params", batch_size=2,
        feed_config=SimpleNamespace(feeded_vars_names=["x"], feeded_vars_dims=[3], feeded_vars_types=["float32"],
                                    **feeds),
        fetch_config=SimpleNamespace(fetch_vars_names=[out]))


def test_a_program_is_read_and_written_under_the_other_name(model):
    folder, out = model
    name = saved_programs.program_type_trans(str(folder), "__model__", is_text=False)
    again = saved_programs.program_type_trans(str(folder), name, is_text=True)
    assert (name, again) == ("__model__.pbtxt", "__model__.pbtxt.bin")
    loaded = [str(saved_programs.load_program(str(folder / name))) for name in (again, "__model__")]
    assert loaded[0] == loaded[1]
    with pytest.raises(CheckpointMissing, match="no such file"):
        saved_programs.load_program(str(folder / "nothing"))


def test_a_saved_model_is_run_on_drawn_data_or_on_a_file(model):
    folder, out = model
    drawn, = saved_programs.check_vars_and_dump(config(folder, out))
    (folder / "rows.txt").write_text("1 0 0\n0 0 1\n")
    found, = saved_programs.check_vars_and_dump(config(folder, out, feeded_vars_filelist=[str(folder / "rows.txt")]))
    weight = fluid.global_scope().find_var("w").get_tensor().numpy()
    assert drawn.shape == (2, 2) and np.allclose(found, weight[[0, 2]])


def test_a_pruned_program_must_fit_the_trained_one(model, capsys):
    folder, out = model
    pruned = saved_programs.load_program(str(folder / "__model__"))
    assert saved_programs.check_pruned_program_vars(fluid.default_main_program(), pruned)
    saved_programs.save_program(fluid.default_main_program(), str(folder / "train"))
    two = SimpleNamespace(train_prog_path=str(folder / "train"), pruned_prog_path=str(folder / "__model__"), draw=True)
    assert saved_programs.check_two_programs(two) and (folder / "program_pruned.dot").exists()
    other = fluid.Program()
    other.global_block().create_parameter(name="w", shape=[3, 5], dtype="float32")
    assert not saved_programs.check_pruned_program_vars(other, pruned) and "w: ((3, 5)" in capsys.readouterr().err


def test_a_program_is_listed_and_drawn(model):
    folder, out = model
    saved_programs.parse_program_proto(str(folder / "__model__"), False, str(folder / "listed"))
    assert "mul" in (folder / "listed" / "ops.log").read_text()
    assert "w" in (folder / "listed" / "vars_persistable.log").read_text()
    path = saved_programs.draw_from_program_file(str(folder / "__model__"), False, str(folder), "drawn")
    text = (folder / "drawn.dot").read_text()
    assert path.endswith("drawn.dot") and '"w" -> "op 0";' in text and f'"op 0" -> "{out}";' in text
    with pytest.raises(UsageError, match="expected block 0"):
        saved_programs.graphviz(fluid.Program()._create_block())
