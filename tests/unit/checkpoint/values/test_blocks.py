"""A server's program is saved and loaded before and after it serves, for any number of servers there was before."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.checkpoint.folders import manifest
from fleet_mpi.errors import CheckpointDamaged, CheckpointMissing, UsageError
from fleet_mpi.program.engine.scope import Scope, scope_guard
from fleet_mpi.runtime import sessions
from fleet_mpi.transpile.server_values import give_back
from tests.unit.program.building import from_scratch

COUNTER = "@LR_DECAY_COUNTER@"


class Job:
    """A program with a table, a schedule and Adam, its servers' programs and scopes, and one worker over loopback."""

    def __init__(self, servers):
        with from_scratch():
            x, y = fluid.layers.data(name="x", shape=[40]), fluid.layers.data(name="y", shape=[1])
            ids = fluid.layers.data(name="ids", shape=[1], dtype="int64")
            rows = fluid.layers.embedding(ids, [9000, 8], is_sparse=True, param_attr="table")
            hidden = fluid.layers.batch_norm(fluid.layers.fc([x, rows], 900, act="relu"))
            self.loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
            fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 5
            fluid.optimizer.Adam(fluid.layers.exponential_decay(0.05, 2, 0.5)).minimize(self.loss)
            self.origin, self.exe, self.scope = fluid.default_main_program().clone(), fluid.Executor(), Scope()
            labels = [f"h:{number}" for number in range(servers)]
            transpiler = fluid.DistributeTranspiler()
            transpiler.transpile(0, pservers=",".join(labels), trainers=1)
            self.startup, self.program = fluid.default_startup_program(), transpiler.get_trainer_program()
            self.distribution = transpiler.distribution
            self.programs = [transpiler.get_pserver_program(label) for label in labels]
            self.scopes = [Scope() for _ in labels]
            for label, scope in zip(labels, self.scopes):
                self.exe.run(transpiler.get_startup_program(label), scope=scope)

    def on_servers(self, call):
        """Call with every server's program, in its scope."""
        for program, scope in zip(self.programs, self.scopes):
            with scope_guard(scope):
                call(program)
        return self

    def train(self, first, last, folder):
        """Serve, and save what some steps lead to, as a worker does."""
        uplink = sessions.embedded(self.distribution, self.scopes)
        self.session = sessions.connect(self.distribution, self.scope, uplink)
        with scope_guard(self.scope):
            self.exe.run(self.startup)
            for step in range(first, last):
                rng = np.random.default_rng(step)
                self.exe.run(self.program,
                             {"x": rng.normal(size=(8, 40)).astype("f"), "y": rng.normal(size=(8, 1)).astype("f"),
                              "ids": rng.integers(0, 9000, (8, 1))})
            fluid.io.save_persistables(self.exe, str(folder), self.program)
            fluid.save(self.program, str(folder / "path"))
        return self


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != manifest.NAME}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folders of an undisturbed training of two servers: after two steps, and after four."""
    folder = tmp_path_factory.mktemp("saved")
    for name, steps in (("then", 2), ("later", 4)):
        Job(2).train(0, steps, folder / name)
    return folder


LOADS = {"a file each": lambda exe, folder: lambda program: fluid.io.load_persistables(exe, str(folder), program),
         "fluid.load": lambda exe, folder: lambda program: fluid.io.load(program, str(folder / "path"), exe)}


@pytest.mark.parametrize("servers, way", ((1, "a file each"), (2, "fluid.load"), (3, "a file each")))
def test_a_server_resumes_from_whole_variables_whatever_number_there_was(saved, tmp_path, servers, way):
    job = Job(servers)
    job.on_servers(LOADS[way](job.exe, saved / "then")).train(2, 4, tmp_path)
    assert files(tmp_path) == files(saved / "later") and "fc_0.w_0_moment1_0" in files(tmp_path)


def test_one_file_for_all_loads_too(saved, tmp_path):
    one = Job(2)
    one.on_servers(LOADS["a file each"](one.exe, saved / "then")).train(2, 2, tmp_path / "again")
    with scope_guard(one.scope):
        fluid.io.save_persistables(one.exe, str(tmp_path / "all"), one.program, filename="values")
    job = Job(3)
    job.on_servers(lambda program: fluid.io.load_persistables(job.exe, str(tmp_path / "all"), program,
                                                              filename="values"))
    assert files(tmp_path / "again") == files(saved / "then")
    job.train(2, 4, tmp_path / "on")
    assert files(tmp_path / "on") == files(saved / "later")


@pytest.mark.parametrize("servers", (1, 2, 3))
def test_what_servers_saved_before_they_serve_makes_wholes_for_any_number_of_servers(saved, tmp_path, servers):
    two = Job(2)
    two.on_servers(LOADS["a file each"](two.exe, saved / "then"))
    two.on_servers(lambda program: fluid.io.save_persistables(two.exe, str(tmp_path / "blocks"), program))
    assert {"table.block0", "table.block1", "fc_0.w_0_moment1_0.block1", "fc_1.w_0",
            COUNTER} < set(files(tmp_path / "blocks"))
    assert "table" not in files(tmp_path / "blocks")
    job = Job(servers)
    job.on_servers(LOADS["a file each"](job.exe, tmp_path / "blocks")).train(2, 4, tmp_path / "on")
    # Statistics of batch normalisation are the workers', and so not in such a folder.
    differ = {name for name, content in files(saved / "later").items() if files(tmp_path / "on")[name] != content}
    assert differ == {"batch_norm_0.w_1", "batch_norm_0.w_2", "path.pdparams"}


def test_after_the_service_a_server_has_all_it_trained(saved, tmp_path):
    job = Job(2)
    job.on_servers(LOADS["a file each"](job.exe, saved / "then")).train(2, 4, tmp_path / "whole")
    for server, scope in zip(job.session.client.transport.on_wait.__closure__[0].cell_contents, job.scopes):
        give_back(job.distribution, server, scope)
    job.on_servers(lambda program: fluid.io.save_persistables(job.exe, str(tmp_path / "blocks"), program))
    other = Job(3)
    other.on_servers(LOADS["a file each"](other.exe, tmp_path / "blocks")).train(4, 4, tmp_path / "again")
    whole, again = files(tmp_path / "whole"), files(tmp_path / "again")
    assert all(again[name] == whole[name]
               for name in ("table", "fc_0.w_0", "fc_0.w_0_moment2_0", "fc_0.b_0_beta1_pow_acc_0",
                            COUNTER))


def test_blocks_and_wholes_replace_each_other_and_blocks_of_some_servers_are_refused(saved, tmp_path):
    three, two = Job(3), Job(2)
    three.on_servers(lambda program: fluid.io.save_persistables(three.exe, str(tmp_path), program))
    program, scope = two.programs[0], two.scopes[0]
    with scope_guard(scope):
        fluid.io.save_persistables(two.exe, str(tmp_path), program)
        with pytest.raises(CheckpointDamaged,
                           match="the blocks of .* rows, expected .*: not all servers that cut it so"):
            fluid.io.load_persistables(two.exe, str(tmp_path), program)
    two.train(0, 1, tmp_path)
    job = Job(1)
    job.on_servers(LOADS["a file each"](job.exe, tmp_path)).train(1, 1, tmp_path / "on")
    assert files(tmp_path / "on")["table"] == files(tmp_path)["table"]


def test_some_variables_are_loaded_alone(saved):
    job = Job(2)
    fresh = np.array(job.scopes[0].array("fc_1.w_0") if job.scopes[0].array("fc_1.w_0") is not None else
                     job.scopes[1].array("fc_1.w_0"))
    moments = [scope.array("fc_0.w_0_moment1_0").copy() for scope in job.scopes]
    job.on_servers(lambda program: fluid.io.load_params(job.exe, str(saved / "then"), program))
    after = next(scope.array("fc_1.w_0") for scope in job.scopes if scope.array("fc_1.w_0") is not None)
    assert not np.array_equal(after, fresh)
    assert all(np.array_equal(scope.array("fc_0.w_0_moment1_0"), before) for scope, before in zip(job.scopes, moments))
    job.on_servers(lambda program: fluid.io.load_vars(job.exe, str(saved / "then"), program,
                                                      vars=["fc_0.w_0_moment1_0"]))
    assert not any(np.array_equal(scope.array("fc_0.w_0_moment1_0"), before)
                   for scope, before in zip(job.scopes, moments))


@pytest.mark.parametrize("call, error, words", (
    (lambda exe, folder, program: fluid.io.save_inference_model(folder, ["x"], [], exe, program), UsageError,
     "save_inference_model: a server has blocks"),
    (lambda exe, folder, program: fluid.save(program, folder + "/x"), UsageError, "save: a server has blocks"),
    (lambda exe, folder, program: fluid.io.load_persistables(exe, folder + "/none", program), CheckpointMissing,
     "no such folder"),
    (lambda exe, folder, program: fluid.io.load(program, folder + "/none", exe), CheckpointMissing,
     "what save\\(\\) was given"),
    (lambda exe, folder, program: fluid.io.load_persistables(exe, folder, program), CheckpointDamaged, "no file for")))
def test_what_a_server_cannot_do_is_a_sentence(tmp_path, call, error, words):
    job = Job(1)
    with scope_guard(job.scopes[0]), pytest.raises(error, match=words):
        call(job.exe, str(tmp_path), job.programs[0])
