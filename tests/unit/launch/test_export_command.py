"""``python -m fleet_mpi export``: one file, a line on stdout; sentences and exit codes for what cannot be exported."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import installing
from fleet_mpi.launch import export_command

ROOT = Path(__file__).parents[3]


@pytest.fixture
def said(capsys, tmp_path, monkeypatch):
    """Run the command in a folder of its own; its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code = export_command.main(list(words))
        return (code, *capsys.readouterr())
    return run


@pytest.fixture
def model(tmp_path):
    """A saved model, y = relu(fc(x))."""
    x = fluid.layers.data("x", [3])
    y = fluid.layers.fc(x, 2, act="relu")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path / "model"), ["x"], [y], exe)
    return tmp_path / "model"


def test_the_file_is_called_like_the_model(said, model, tmp_path):
    code, out, error = said(str(model) + os.sep, "--to", "npz")
    assert (code, error) == (0, "") and out.startswith("model.npz: 2 variables, 8 elements, ")
    assert sorted(np.load(tmp_path / "model.npz").files) == ["fc_0.b_0", "fc_0.w_0"]


def test_onnx_tells_what_goes_in_and_comes_out(said, model, tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install '.[export]'")
    code, out, error = said("model", "--to", "onnx", "--output", "below/y.onnx")
    assert (code, error) == (0, "")
    assert out.startswith("below/y.onnx: 3 nodes from x float32[N, 3] to fc_0.tmp_2 float32[?, 2], ")
    onnx.checker.check_model(onnx.load(tmp_path / "below" / "y.onnx"), full_check=True)


@pytest.mark.parametrize("words, code, start", (
    (("nowhere", "--to", "npz"), 2, "CheckpointMissing: 'nowhere': no such folder; nothing was saved there"),
    (("model/__model__", "--to", "npz"), 2, "CheckpointMissing: 'model/__model__': a file, not a folder"),
    (("model", "--to", "npz", "--output", "model"), 3,
     "StorageProblem: write 'model': there is a folder where the file should be"),
    (("model", "--to", "npz", "--output", "model/__model__/x"), 3,
     "StorageProblem: write 'model/__model__/x': there is a file where a folder should be"),
    (("model", "--to", "npz", "--output", "/proc/x.npz"), 3, "StorageProblem: write '/proc/x.npz': "),
))
def test_what_cannot_be_exported_is_a_sentence(said, model, words, code, start):
    got, out, error = said(*words)
    assert (got, out) == (code, "") and error.startswith(f"fleet_mpi: {start}") and error.count("\n") == 1


def test_a_damaged_model_is_code_6_and_leaves_no_file(said, model, tmp_path):
    os.truncate(model / "__model__", 60)
    got, out, error = said("model", "--to", "npz")
    assert (got, out) == (6, "") and "1 of 1 files are not what was saved: __model__" in error
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("to", ("onnx", "safetensors"))
def test_a_missing_library_is_code_3_and_the_line_that_installs_it(said, model, tmp_path, monkeypatch, to):
    monkeypatch.setitem(sys.modules, to, None)
    for name in [name for name in sys.modules if name.startswith("fleet_mpi.export.onnx_")]:
        monkeypatch.delitem(sys.modules, name)
    got, out, error = said("model", "--to", to)
    assert (got, out) == (3, "")
    assert f"need the package {to}, which is not installed: {installing('export')}, or pip install {to}\n" in error
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_export_is_a_command(model, tmp_path):
    ended = subprocess.run([sys.executable, "-m", "fleet_mpi", "export", "model", "--to", "npz"], cwd=tmp_path,
                           capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(ROOT), "PATH": ""})
    assert (ended.returncode, ended.stderr) == (0, "") and ended.stdout.startswith("model.npz: ")


@pytest.mark.parametrize("words", ((), ("model",), ("model", "--to", "tflite")))
def test_misuse_is_code_2(words, tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        export_command.main(list(words))
    assert left.value.code == 2 and "usage: python -m fleet_mpi export" in capsys.readouterr().err
