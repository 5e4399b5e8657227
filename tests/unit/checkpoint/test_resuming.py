"""A training that is saved and resumed drops out what it would have dropped out had it not been stopped."""

import os
import subprocess
import sys

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.checkpoint.folders import manifest
from fleet_mpi.fleet.collective_checkpoints import TrainStatus
from fleet_mpi.fleet.facade import CollectiveFleet
from fleet_mpi.fleet.role_makers import UserDefinedCollectiveRoleMaker
from fleet_mpi.program.engine import randomness
from fleet_mpi.program.engine.scope import Scope, scope_guard
from tests.unit.program.building import from_scratch


class Training:
    """A network with dropout and a sparse embedding in programs and a scope of its own, with servers inside or
    alone."""

    def __init__(self, servers=0, fleet=None, width=8):
        with from_scratch() as (self.main, self.startup):
            x, ids = fluid.data("x", [None, 6]), fluid.data("ids", [None, 1], dtype="int64")
            hidden = fluid.layers.fc([x, fluid.layers.embedding(ids, [20, 4], is_sparse=True)], width, act="relu")
            self.loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.dropout(hidden, 0.5), 1))
            optimizer = fluid.optimizer.Adam(0.05)
            (fleet.distributed_optimizer(optimizer) if fleet else optimizer).minimize(self.loss)
            self.origin = self.main.clone()
            if servers:
                transpiler = fluid.DistributeTranspiler()
                transpiler.transpile(0, self.main, pservers=",".join(f"h:{n}" for n in range(servers)), trainers=1,
                                     startup_program=self.startup)
                self.main = transpiler.get_trainer_program()
        self.scope, self.exe = Scope(), fluid.Executor()
        self.exe.run(self.startup, scope=self.scope)

    def run(self, first, last):
        """The bits of the losses of some steps."""
        rng = np.random.default_rng(3)
        feed = {"x": rng.normal(size=(5, 6)).astype("f"), "ids": rng.integers(0, 20, (5, 1))}
        return [self.exe.run(self.main, feed, [self.loss], scope=self.scope)[0].tobytes() for _ in range(first, last)]

    def do(self, call, *given, **named):
        """Call something of fluid.io for this training."""
        with scope_guard(self.scope):
            return call(self.exe, *given, main_program=self.main, **named)


@pytest.fixture(scope="module")
def losses():
    """Of ten steps without a stop."""
    return Training().run(0, 10)


@pytest.mark.parametrize("filename", (None, "all"))
@pytest.mark.parametrize("before, after", ((0, 0), (2, 2), (0, 3), (2, 0)))
def test_five_steps_a_save_and_five_more_are_ten_steps(tmp_path, losses, before, after, filename):
    first = Training(before)
    assert first.run(0, 5) == losses[:5]
    first.do(fluid.io.save_persistables, str(tmp_path), filename=filename)
    second = Training(after)
    second.do(fluid.io.load_persistables, str(tmp_path), filename=filename)
    assert second.run(5, 10) == losses[5:]
    second.do(fluid.io.load_persistables, str(tmp_path), filename=filename)
    assert second.run(5, 7) == losses[5:7], "back to where it was saved"


def test_fluid_save_and_load_resume_too_and_each_path_for_itself(tmp_path, losses):
    first = Training()
    for steps in ((0, 3), (3, 5)):
        first.run(*steps)
        with scope_guard(first.scope):
            fluid.save(first.main, str(tmp_path / f"after{steps[1]}"))
    for step in (3, 5):
        second = Training()
        with scope_guard(second.scope):
            fluid.load(second.main, str(tmp_path / f"after{step}"))
        assert second.run(step, 10) == losses[step:]


def test_a_collective_checkpoint_resumes(tmp_path, losses):
    for step, then in ((0, 5), (5, 10)):
        fleet = CollectiveFleet()
        fleet.init(UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:6170"]))
        training = Training(fleet=fleet)
        with scope_guard(training.scope):
            assert fleet.load_check_point(training.exe, str(tmp_path)) == (TrainStatus(5) if step else None)
            assert training.run(step, then) == losses[step:then]
            fleet.save_check_point(training.exe, str(tmp_path), TrainStatus(then))


def test_another_program_and_a_part_of_the_files_do_not_take_the_count(tmp_path):
    first = Training()
    first.run(0, 5)
    first.do(fluid.io.save_persistables, str(tmp_path))
    second = Training()
    second.do(fluid.io.load_params, str(tmp_path))
    assert randomness.runs_of(second.main, second.scope) == 0
    test = second.main.clone(for_test=True)
    with scope_guard(second.scope):
        fluid.io.load_persistables(second.exe, str(tmp_path), test)
    assert randomness.runs_of(test, second.scope) == 0
    assert randomness.identity(Training(width=9).main) != randomness.identity(first.main)


def test_files_that_were_replaced_since_do_not_take_the_count_and_equal_ones_do(tmp_path, losses):
    first = Training()
    first.run(0, 5)
    first.do(fluid.io.save_persistables, str(tmp_path))
    first.do(fluid.io.save_params, str(tmp_path))
    second = Training()
    second.do(fluid.io.load_persistables, str(tmp_path))
    assert second.run(5, 7) == losses[5:7]
    first.run(5, 6)
    first.do(fluid.io.save_params, str(tmp_path))
    third = Training()
    third.do(fluid.io.load_persistables, str(tmp_path))
    assert randomness.runs_of(third.main, third.scope) == 0


def test_a_program_is_the_same_one_alone_with_servers_and_among_workers():
    alone = randomness.identity(Training().main)
    assert randomness.identity(Training(2).main) == alone
    assert randomness.identity(Training().main.clone(for_test=True)) != alone


def test_the_count_is_in_the_manifest_and_in_no_other_file(tmp_path):
    written = []
    for steps in (0, 5):
        training = Training()
        for _ in range(steps):
            training.exe.run(training.main.clone(for_test=True), {
                "x": np.ones((1, 6), "f"), "ids": np.ones((1, 1), "int64")}, scope=training.scope)
        randomness.resume(training.main, training.scope, steps)
        training.do(fluid.io.save_persistables, str(tmp_path / str(steps)))
        written.append({path.name: path.read_bytes() for path in (tmp_path / str(steps)).glob("[!.]*")})
        assert f'"runs":{steps}'.encode() in (tmp_path / str(steps) / manifest.NAME).read_bytes()
    assert written[0] == written[1]


SCRIPT = """
import sys
import numpy as np
import fleet_mpi.fluid as fluid
x = fluid.layers.data(name="x", shape=[4])
loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.dropout(fluid.layers.fc(x, 8), 0.5), 1))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
load, first, save, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
if load != "-":
    fluid.io.load_persistables(exe, load)
for step in range(first, last):
    value, = exe.run(feed={"x": np.ones((2, 4), "f")}, fetch_list=[loss])
    print(step, value.tobytes().hex())
    if step + 1 == save:
        fluid.io.save_persistables(exe, "kept")
"""


def test_a_job_without_a_seed_of_its_own_goes_on_in_another_process(tmp_path):
    def run(*words):
        environment = {name: value for name, value in os.environ.items() if name != "FLEET_MPI_SEED"}
        ended = subprocess.run([sys.executable, "-c", SCRIPT, *map(str, words)], cwd=tmp_path, env=environment,
                               text=True,
                               capture_output=True, timeout=120)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.splitlines()
    whole = run("-", 0, 3, 6)
    assert run("kept", 3, 0, 6) == whole[3:]
    assert run("-", 0, 0, 3) != whole[:3], "every job has another seed"
