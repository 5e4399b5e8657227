"""A saved program's variables as a dictionary, and back into a program."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import CheckpointDamaged, CheckpointMissing, UsageError


@pytest.fixture
def trained():
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 2, param_attr="w", bias_attr="b"))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.ones((2, 3), "float32")})
    return exe, fluid.default_main_program()


def value(name):
    return fluid.global_scope().find_var(name).get_tensor().numpy().copy()


def test_what_save_wrote_is_read_with_the_optimizers_state(trained, tmp_path):
    exe, program = trained
    fluid.save(program, str(tmp_path / "model"))
    state = fluid.io.load_program_state(str(tmp_path / "model"))
    assert {"w", "b"} < set(state) and any("velocity" in name for name in state)
    assert all((state[name] == value(name)).all() for name in state)
    assert set(fluid.io.load_program_state(str(tmp_path / "model"), [program.global_block().var("w")])) == {"w"}


def test_a_state_is_put_back(trained, tmp_path, capsys):
    exe, program = trained
    fluid.io.save_params(exe, str(tmp_path), program)
    state = fluid.load_program_state(str(tmp_path))
    assert set(state) == {"w", "b"}
    before = value("w")
    fluid.io.set_program_state(program, {**state, "w": state["w"] + 1, "other": np.zeros(1)})
    assert (value("w") == before + 1).all() and "has no other" in capsys.readouterr().err
    with pytest.raises(CheckpointDamaged, match="do not fit this program"):
        fluid.io.set_program_state(program, {"w": np.zeros((1, 1), "float32")})
    with pytest.raises(UsageError, match="expected a dictionary"):
        fluid.io.set_program_state(program, [state])


def test_one_file_for_all_needs_the_names(trained, tmp_path):
    exe, program = trained
    fluid.io.save_params(exe, str(tmp_path), program, filename="all")
    with pytest.raises(UsageError, match="give var_list"):
        fluid.io.load_program_state(str(tmp_path / "all"))
    state = fluid.io.load_program_state(str(tmp_path / "all"), program.all_parameters())
    assert (state["b"] == value("b")).all()
    with pytest.raises(CheckpointMissing, match="neither"):
        fluid.io.load_program_state(str(tmp_path / "nothing"))


def test_single_parameters(trained):
    exe, program = trained
    assert (fluid.io.get_parameter_value(program.global_block().var("w"), exe) == value("w")).all()
    assert (fluid.io.get_parameter_value_by_name("b", exe) == value("b")).all()
    with pytest.raises(UsageError, match="expected a parameter"):
        fluid.io.get_parameter_value(program.global_block().var("x"), exe)
