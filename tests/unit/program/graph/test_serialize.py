"""fleet_mpi/program/graph/serialize.py: a program read back is equal, and gives equal bits in another process."""

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fleet_mpi.errors import CheckpointDamaged, ProgramError
from fleet_mpi.program.build.clip import ClipByGlobalNorm
from fleet_mpi.program.build.regularizers import L2Decay
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import Program, default_main_program, default_startup_program
from fleet_mpi.program.graph.serialize import MAGIC, VERSION, parse, program_to_bytes
from fleet_mpi.program.layers import loss, nn
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.optimizers.plain import Adam
from tests.unit.program.building import apply, data, mean


def build():
    """A training program with most that a program can hold; the name of its loss."""
    default_main_program().random_seed = default_startup_program().random_seed = 9
    image, ids = data("image", [-1, 1, 6, 6]), data("ids", [-1, 1], "int64")
    label = data("label", [-1, 1], "int64")
    hidden = nn.batch_norm(nn.conv2d(image, 3, 3, padding=1), act="relu")
    hidden = nn.dropout(fc(hidden, 8, act="tanh"), 0.3)
    rows = embedding(ids, [10, 8], is_sparse=True)
    scores = fc(apply("elementwise_add", {"X": hidden, "Y": rows}), 5)
    cost = mean(loss.softmax_with_cross_entropy(scores, label))
    Adam(0.01, grad_clip=ClipByGlobalNorm(1.0), regularization=L2Decay(1e-3)).minimize(cost)
    return cost.name


def trained(main, startup, cost):
    """A digest of all losses and of all that the scope holds after four steps."""
    rng, exe, scope, digest = np.random.default_rng(1), Executor(), Scope(), hashlib.sha256()
    exe.run(startup, scope=scope)
    for _ in range(4):
        feed = {"image": rng.normal(size=(4, 1, 6, 6)).astype("f"), "ids": rng.integers(0, 9, (4, 1)),
                "label": rng.integers(0, 5, (4, 1))}
        digest.update(exe.run(main, feed, [cost], scope=scope)[0].tobytes())
    for name in sorted(scope.local_var_names()):
        digest.update(name.encode() + np.array(scope.find_var(name).get_tensor()).tobytes())
    return digest.hexdigest()


def test_a_training_program_gives_equal_bits_in_another_process(tmp_path):
    cost = build()
    main, startup = default_main_program(), default_startup_program()
    (tmp_path / "main").write_bytes(program_to_bytes(main, {"cost": cost}))
    (tmp_path / "startup").write_bytes(startup.serialize_to_string())
    script = ("import pathlib, sys; from tests.unit.program.graph.test_serialize import *\n"
              "folder = pathlib.Path(sys.argv[1])\n"
              "main, extra = parse((folder / 'main').read_bytes())\n"
              "startup = Program.parse_from_string((folder / 'startup').read_bytes())\n"
              "print(trained(main, startup, extra['cost']))")
    done = subprocess.run([sys.executable, "-c", script, tmp_path], cwd=Path(__file__).parents[4], text=True,
                          capture_output=True, check=True)
    assert done.stdout.strip() == trained(main, startup, cost)


def test_writing_what_was_read_gives_the_same_bytes_and_text():
    build()
    written = default_main_program().serialize_to_string()
    again = Program.parse_from_string(written)
    assert again.serialize_to_string() == written and str(again) == str(default_main_program())
    assert [param.name for param in again.all_parameters()] == [
        param.name for param in default_main_program().all_parameters()]


def test_attributes_of_every_kind_come_back():
    x = data("x", [-1, 3])
    attrs = {"scale": float("inf"), "text": "ä/b", "pair": (1, 2.5), "count": np.int64(3), "none": None,
             "table": np.arange(6, dtype="int16").reshape(2, 3)}
    apply("scale", {"X": x}, **attrs)
    found = Program.parse_from_string(default_main_program().serialize_to_string()).global_block().ops[0].attrs
    assert found["scale"] == float("inf") and found["text"] == "ä/b" and found["pair"] == [1, 2.5]
    assert found["count"] == 3 and found["none"] is None
    assert found["table"].dtype == np.int16 and found["table"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_python_function_cannot_be_saved():
    apply("scale", {"X": data("x", [-1, 3])}, function=build)
    with pytest.raises(ProgramError, match="cannot be saved.*function"):
        default_main_program().serialize_to_string()


@pytest.mark.parametrize("data", [
    b"", b"something else", MAGIC + b"x\n{}", MAGIC + b"%d\n{}" % (VERSION + 1), MAGIC + b"%d\n{}" % VERSION,
    MAGIC + b"%d\n[]" % VERSION, MAGIC + b"%d\n\xff" % VERSION])
def test_damaged_or_foreign_bytes_are_said_to_be(data):
    with pytest.raises(CheckpointDamaged):
        parse(data)


def test_a_cut_file_is_damaged():
    build()
    written = default_main_program().serialize_to_string()
    with pytest.raises(CheckpointDamaged):
        parse(written[:-10])
