"""A program's state under one path."""

import pytest

from fleet_mpi.checkpoint.models.model_files import load, save
from fleet_mpi.errors import CheckpointMissing, NotBuilt, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, global_scope, scope_guard
from fleet_mpi.program.graph.program import Program, default_main_program, default_startup_program
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.optimizers.plain import Adam


def network(trained):
    """A program with or without an optimizer, initialised."""
    loss = mean(fc(data(name="x", shape=[3]), 2))
    if trained:
        Adam(0.1).minimize(loss)
    Executor().run(default_startup_program())
    return default_main_program()


@pytest.mark.parametrize("trained", (True, False))
def test_what_was_saved_is_loaded(tmp_path, trained):
    program, path = network(trained), str(tmp_path / "model")
    before = {name: global_scope().array(name).copy() for name in global_scope().local_var_names()}
    save(program, path)
    endings = {".pdparams", ".pdmodel"} | ({".pdopt"} if trained else set())
    assert {one.suffix for one in tmp_path.glob("model*")} == endings
    with scope_guard(Scope()):
        load(program, path)
        assert set(global_scope().local_var_names()) == set(before)
        assert all((global_scope().array(name) == array).all() for name, array in before.items())


def test_the_program_itself_is_saved(tmp_path):
    program = network(trained=False)
    save(program, str(tmp_path / "model"))
    assert str(Program.parse_from_string((tmp_path / "model.pdmodel").read_bytes())) == str(program)


def test_what_cannot_be_is_said(tmp_path):
    program = network(trained=False)
    with pytest.raises(CheckpointMissing, match="model.pdparams: no such file"):
        load(program, str(tmp_path / "model"))
    with pytest.raises(UsageError, match="expected a path that ends with a name"):
        save(program, str(tmp_path) + "/")
    with pytest.raises(NotBuilt, match="var_list is not built"):
        load(program, str(tmp_path / "model"), var_list=[])
