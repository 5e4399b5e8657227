"""``python -m fleet_mpi plan``: the table on stdout, sentences and exit codes for what cannot be planned."""

import subprocess
import sys
from pathlib import Path

import pytest

from fleet_mpi import fluid
from fleet_mpi.launch import plan_command
from fleet_mpi.wire import protocol

ROOT = Path(__file__).parents[3]


@pytest.fixture
def said(capsys):
    """Run the command; its exit code, stdout and stderr."""
    def run(*words):
        code = plan_command.main(list(words))
        return (code, *capsys.readouterr())
    return run


def shards(table):
    """(server, shard) of every line of the first table."""
    return [tuple(line.split()[:2]) for line in table.partition("\n\n")[0].splitlines()[1:]]


def sentence(table):
    """The last line."""
    return table.splitlines()[-1]


def test_variables_of_the_command_line_are_placed(said):
    code, table, error = said("--servers", "2", "w:1000x20", "b:20")
    assert (code, error) == (0, "")
    assert shards(table) == [("0", "w.block0"), ("0", "b"), ("1", "w.block1")]
    assert sentence(table).startswith("2 variables in 3 shards, 80,080 bytes on 2 servers; imbalance 1.001 ")
    assert sentence(table).endswith("a worker's step is 4 messages and 160,160 bytes")


def test_the_options_reach_the_placement(said):
    words = ("--servers", "3", "w:1000x20", "b:20", "odd:name:7:float64")
    assert shards(said(*words, "--no-slice")[1]) == [("0", "odd:name"), ("1", "b"), ("2", "w")]
    assert shards(said(*words, "--no-slice", "--seed", "1")[1]) == [("0", "w"), ("1", "odd:name"), ("2", "b")]
    assert len(shards(said(*words, "--min-block-size", "5")[1])) == 3 + 3 + 1
    assert shards(said(*words, "--method", "Balanced", "--min-block-size", "20000")[1]) \
        == [("0", "w"), ("1", "b"), ("2", "odd:name")]
    assert "80,136 bytes" in said(*words)[1]


def test_messages_are_counted_as_the_wire_cuts_them(said):
    piece = protocol.PIECE // 4
    assert "is 2 messages" in sentence(said("--servers", "1", f"w:{piece}")[1])
    # Each way a header, then three pieces.
    assert "is 8 messages" in sentence(said("--servers", "1", f"w:{2 * piece + 1}")[1])


def build():
    """A small network with Adam, initialised."""
    x = fluid.layers.data(name="x", shape=[13])
    y = fluid.layers.fc(x, 2000, param_attr=fluid.ParamAttr(name="below/w"))
    fluid.layers.fc(x, 2, param_attr=fluid.ParamAttr(name="fixed", trainable=False))
    loss = fluid.layers.mean(y)
    fluid.optimizer.Adam(fluid.layers.exponential_decay(0.1, 10, 0.5)).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe, y


@pytest.mark.parametrize("together", (None, "all"))
def test_a_saved_inference_model_is_placed(said, tmp_path, together):
    exe, y = build()
    fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe, params_filename=together)
    code, table, error = said("--servers", "2", "--model", str(tmp_path))
    assert (code, error) == (0, "")
    assert shards(table) == [("0", "below/w.block0"), ("0", "fc_0.b_0"), ("1", "below/w.block1")]


def test_a_folder_of_saved_variables_is_placed_without_the_optimizers_state(said, tmp_path):
    exe, _ = build()
    fluid.io.save_persistables(exe, str(tmp_path))
    assert (tmp_path / "fc_0.b_0_moment1_0").is_file() and (tmp_path / "@LR_DECAY_COUNTER@").is_file()
    code, table, error = said("--servers", "2", "--min-block-size", "100000", "--model", str(tmp_path))
    assert (code, error) == (0, "")
    assert shards(table) == [("0", "below/w"), ("0", "fc_1.b_0"), ("1", "fc_0.b_0"), ("1", "fixed")]


@pytest.mark.parametrize("words, code, start", (
    (("--servers", "0", "w:5"), 2, "UsageError: placement: servers must be a whole number of at least 1, got 0"),
    (("--servers", "2"), 2, "UsageError: plan: nothing to place; give variables as NAME:SHAPE"),
    (("--servers", "2", "w"), 2, "UsageError: plan: expected a variable as NAME:SHAPE, e.g. w:1000x20, got 'w'"),
    (("--servers", "2", "w:5x-1"), 2,
     "UsageError: plan: expected a variable as NAME:SHAPE, e.g. w:1000x20, got 'w:5x-1'"),
    (("--servers", "2", "w:5:float31"), 2, "UsageError: placement: dtype 'float31' is not one"),
    (("--servers", "2", "--method", "HashNam", "w:5"), 2,
     "UsageError: split method 'HashNam' is unknown; did you mean"),
    (("--servers", "2", "--model", "nowhere"), 2, "UsageError: plan: --model 'nowhere' is not a folder"),
))
def test_what_cannot_be_planned_is_a_sentence(said, words, code, start):
    got, table, error = said(*words)
    assert (got, table) == (code, "") and error.startswith(f"fleet_mpi: {start}") and error.count("\n") == 1


def test_a_damaged_file_is_named(said, tmp_path):
    (tmp_path / "w").write_bytes(b"no tensor")
    code, _, error = said("--servers", "2", "--model", str(tmp_path))
    assert code == 6 and str(tmp_path / "w") in error


def run(folder, *words):
    """The command as one types it."""
    return subprocess.run([sys.executable, "-m", "fleet_mpi", *words], cwd=folder, capture_output=True, text=True,
                          timeout=60, env={"PYTHONPATH": str(ROOT), "PATH": ""})


def test_plan_is_a_command_unless_a_file_is_called_so(tmp_path):
    ended = run(tmp_path, "plan", "--servers", "1", "w:3")
    assert (ended.returncode, ended.stderr) == (0, "") and shards(ended.stdout) == [("0", "w")]
    (tmp_path / "plan").write_text("import sys; print('mine', sys.argv[1:])")
    assert run(tmp_path, "plan", "--servers", "1").stdout == "mine ['--servers', '1']\n"


def test_wrong_options_are_usage(tmp_path):
    ended = run(tmp_path, "plan", "w:3")
    assert ended.returncode == 2 and "required: --servers" in ended.stderr and not ended.stdout
