"""``fluid.io`` on a worker's program: what the servers have is saved and loaded with it; an executor's end is a
goodbye."""

import gc

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.checkpoint.folders import manifest
from fleet_mpi.checkpoint.sources import Source
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.scope import Scope, global_scope, scope_guard
from fleet_mpi.runtime import sessions
from tests.unit.program.building import from_scratch

FEED = {"x": np.linspace(-1, 1, 24, dtype="float32").reshape(4, 6), "y": np.ones((4, 1), "float32")}


class Training:
    """A small model in the default programs, with two servers inside this process or with none."""

    def __init__(self, with_servers=True):
        x, y = fluid.layers.data(name="x", shape=[6]), fluid.layers.data(name="y", shape=[1])
        self.guess = fluid.layers.fc(fluid.layers.batch_norm(fluid.layers.fc(x, 8, act="relu")), 1)
        self.loss = fluid.layers.mean(fluid.layers.square_error_cost(self.guess, y))
        fluid.default_startup_program().random_seed = 3
        fluid.optimizer.Momentum(0.1, 0.9).minimize(self.loss)
        self.program, self.exe = fluid.default_main_program(), fluid.Executor()
        if with_servers:
            transpiler = fluid.DistributeTranspiler()
            transpiler.transpile(0, pservers="a:1,b:1", trainers=1)
            self.program = transpiler.get_trainer_program()

    def train(self, steps=3):
        """Some steps, after the startup program has run."""
        for _ in range(steps):
            self.exe.run(self.program, feed=FEED)
        return self

    def start(self):
        """Run the startup program."""
        self.exe.run(fluid.default_startup_program())
        return self


@pytest.fixture
def fresh():
    """Default programs and a global scope of the test's own, as often as it asks."""
    with from_scratch(), scope_guard(Scope()):
        yield


def files(folder):
    """{name: bytes}."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != manifest.NAME}


def saved(folder, with_servers, save=fluid.io.save_persistables, **how):
    """The files of a training, from scratch."""
    with from_scratch(), scope_guard(Scope()):
        training = Training(with_servers).start().train()
        save(training.exe, str(folder), training.program, **how)
    return files(folder)


@pytest.mark.parametrize("save, how", (
    (fluid.io.save_persistables, {}), (fluid.io.save_persistables, {"filename": "all"}), (fluid.io.save_params, {}),
    (fluid.io.save_vars, {"vars": ["fc_0.w_0", "fc_0.w_0_velocity_0"]})))
def test_the_files_are_those_of_one_process(tmp_path, save, how):
    with_servers = saved(tmp_path / "servers", True, save, **how)
    assert with_servers == saved(tmp_path / "alone", False, save, **how) and with_servers


def test_an_inference_model_is_that_of_one_process(tmp_path):
    def save(exe, folder, program):
        target = program.global_block().var("fc_1.tmp_1")
        assert fluid.io.save_inference_model(folder, ["x"], [target], exe, program) == [target.name]
    with_servers = saved(tmp_path / "servers", True, save)
    assert with_servers == saved(tmp_path / "alone", False, save) and "__model__" in with_servers


def test_a_path_for_all_gets_the_files_of_one_process(tmp_path):
    def save(exe, folder, program):
        fluid.save(program, folder + "/trained")
    with_servers = saved(tmp_path / "servers", True, save)
    assert with_servers == saved(tmp_path / "alone", False, save)
    assert set(with_servers) == {"trained.pdparams", "trained.pdopt", "trained.pdmodel"}


def test_what_was_saved_can_be_taken_up_again_while_servers_run(tmp_path, fresh):
    training = Training().start().train()
    fluid.io.save_persistables(training.exe, str(tmp_path / "then"), training.program)
    training.train(2)
    fluid.io.save_persistables(training.exe, str(tmp_path / "later"), training.program)
    fluid.io.load_persistables(training.exe, str(tmp_path / "then"), training.program)
    fluid.io.save_persistables(training.exe, str(tmp_path / "again"), training.program)
    assert files(tmp_path / "again") == files(tmp_path / "then") != files(tmp_path / "later")
    training.train(2)
    fluid.io.save_persistables(training.exe, str(tmp_path / "again"), training.program)
    assert files(tmp_path / "again") == files(tmp_path / "later")


@pytest.mark.parametrize("with_servers", [True, False])
@pytest.mark.parametrize("filename", [None, "params"])
def test_parameters_are_loaded_and_states_go_on_whether_there_are_servers_or_not(tmp_path, fresh, with_servers,
                                                                                 filename):
    training = Training(with_servers).start().train()
    fluid.io.save_params(training.exe, str(tmp_path / "then"), training.program, filename)
    training.train(2)
    fluid.io.save_persistables(training.exe, str(tmp_path / "later"), training.program)
    fluid.io.load_params(training.exe, str(tmp_path / "then"), training.program, filename)
    fluid.io.save_params(training.exe, str(tmp_path / "again"), training.program, filename)
    assert files(tmp_path / "again") == files(tmp_path / "then")
    fluid.io.save_persistables(training.exe, str(tmp_path / "all"), training.program)
    later, now = files(tmp_path / "later"), files(tmp_path / "all")
    differ = {name for name in now if now[name] != later[name]}
    assert differ == {one.name for one in training.program.all_parameters()}
    training.train(1)
    fluid.io.save_params(training.exe, str(tmp_path / "trained"), training.program)
    with from_scratch(), scope_guard(Scope()):
        other = Training(not with_servers).start()
        fluid.io.load_persistables(other.exe, str(tmp_path / "all"), other.program)
        other.train(1)
        fluid.io.save_params(other.exe, str(tmp_path / "other"), other.program)
    assert files(tmp_path / "trained") == files(tmp_path / "other")


def test_single_variables_are_loaded_on_the_servers_and_beside_them(tmp_path, fresh):
    training = Training().start().train()
    fluid.io.save_persistables(training.exe, str(tmp_path / "then"), training.program)
    training.train(2)
    fluid.io.save_persistables(training.exe, str(tmp_path / "later"), training.program)
    # A state, which only the servers' programs have; a parameter, as a variable; a worker's own statistics.
    names = ["fc_0.w_0_velocity_0", "fc_1.w_0", "batch_norm_0.w_1"]
    vars = [names[0], training.program.global_block().var(names[1]), names[2]]
    fluid.io.load_vars(training.exe, str(tmp_path / "then"), training.program, vars=vars)
    fluid.io.save_persistables(training.exe, str(tmp_path / "now"), training.program)
    then, later, now = (files(tmp_path / name) for name in ("then", "later", "now"))
    assert all(then[name] != later[name] for name in names)
    assert now == {**later, **{name: then[name] for name in names}}
    with pytest.raises(UsageError, match="no_such"):
        fluid.io.load_vars(training.exe, str(tmp_path / "then"), training.program, vars=["no_such"])


def test_what_is_a_workers_own_is_loaded_without_servers(tmp_path, fresh):
    training = Training().start().train()
    fluid.io.save_vars(training.exe, str(tmp_path), training.program, vars=["batch_norm_0.w_1"])
    want = global_scope().find_var("batch_norm_0.w_1").get_tensor().array.copy()
    training.train(1).exe.close()
    fluid.io.load_vars(training.exe, str(tmp_path), training.program, vars=["batch_norm_0.w_1"])
    np.testing.assert_array_equal(global_scope().find_var("batch_norm_0.w_1").get_tensor().array, want)


@pytest.mark.parametrize("call", (fluid.io.save_persistables, fluid.io.load_persistables, fluid.io.load_params))
def test_a_worker_that_is_not_connected_is_told_so(tmp_path, fresh, call):
    training = Training()
    with pytest.raises(UsageError, match="not connected to the servers"):
        call(training.exe, str(tmp_path), training.program)
    training.start().exe.close()
    training.train(1)
    training.exe.close()
    with pytest.raises(UsageError, match="before stop_worker or exe.close"):
        call(training.exe, str(tmp_path), training.program)


def test_closing_the_executor_that_trained_is_a_goodbye_and_losing_one_is_not(fresh):
    training = Training().start().train()
    session = sessions.session_of(global_scope())
    other = fluid.Executor()
    other.run(fluid.default_startup_program())
    other.close()
    helper = fluid.Executor()
    helper.run(training.program, feed=FEED)
    del helper
    gc.collect()
    assert not session.is_over
    training.exe.close()
    assert session.is_over
    with pytest.raises(UsageError, match="has said goodbye"):
        training.train(1)


def test_a_worker_does_not_wait_in_a_folder_that_worker_0_is_still_about_to_make(tmp_path):
    program = fluid.Program()
    program.global_block().create_var(name="rate", shape=[1], dtype="float32", persistable=True)
    for folder in (tmp_path / "nowhere", tmp_path):
        assert not Source(folder).has(program, ["rate"]) and not Source(folder, ["all"]).has(program, ["rate"])
