"""The collective fleet of 1.x on two ranks: roles in three ways, training, testing, saving, checkpoints."""

import re

import pytest

from tests.mpi.jobs import run_job

SCRIPT = """
import hashlib, os, sys
import numpy as np
from fleet_mpi import fluid, paddle
from fleet_mpi.fluid.incubate.fleet.base import role_maker
from fleet_mpi.fluid.incubate.fleet.collective import DistributedStrategy, LocalFS, TrainStatus, fleet

folder, way = sys.argv[1:3]
if way == "none":
    fleet.init()
elif way == "cloud":
    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
else:
    fleet.init(role_maker.UserDefinedCollectiveRoleMaker(int(way), ["a:1", "b:1"]))
worker = fleet.worker_index()
assert (fleet.worker_num(), fleet.is_worker(), fleet.is_first_worker()) == (2, True, worker == 0)
assert (paddle.distributed.get_rank(), paddle.distributed.get_world_size()) == (worker, 2)

x, y = (fluid.layers.data(name=name, shape=[size]) for name, size in (("x", 13), ("y", 1)))
guess = fluid.layers.fc(x, 1)
loss = fluid.layers.mean(fluid.layers.square_error_cost(guess, y))
fluid.default_startup_program().random_seed = 1 + worker
fleet.distributed_optimizer(fluid.optimizer.Momentum(0.01, 0.9), DistributedStrategy()).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fleet.startup_program)


def feed(step):
    rows = np.random.RandomState(2 * step + worker).normal(size=(20, 13)).astype("float32")
    return {"x": rows, "y": rows.sum(1, keepdims=True)}


def train(steps):
    for step in steps:
        exe.run(fleet.main_program, feed=feed(step), fetch_list=[loss])


def digest():
    arrays = [np.array(fluid.global_scope().find_var(p.name).get_tensor()) for p in fleet.main_program.all_parameters()]
    return hashlib.sha256(b"".join(one.tobytes() for one in arrays)).hexdigest()


path = os.path.join(folder, "checkpoints")
assert fleet.load_check_point(exe, path, trainer_id=worker) is None
for number in range(3):
    train(range(10 * number, 10 * number + 10))
    fleet.save_check_point(exe, path, TrainStatus(number), fs=LocalFS(), remain_all_checkpoint=number < 2)
train(range(30, 40))
whole = digest()
with fluid.scope_guard(fluid.Scope()):
    exe.run(fleet.startup_program)
    status = fleet.load_check_point(exe, path, trainer_id=worker)
    assert status == TrainStatus(2), status
    train(range(10 * status.next(), 10 * status.next() + 10))
    assert digest() == whole, "resumed, it came elsewhere"
print("sha", whole)

# What one worker does by itself must not wait for the other.
if fleet.is_first_worker():
    assert os.listdir(path) == ["__paddle_fleet_checkpoint__.2"], os.listdir(path)
    fleet.save_persistables(executor=exe, dirname=os.path.join(folder, "all"))
    fleet.save_inference_model(exe, os.path.join(folder, "model"), ["x"], [guess])
    tested, = exe.run(fleet.main_program.clone(for_test=True), feed=feed(50), fetch_list=[loss])
    fluid.Program.parse_from_string(fleet._origin_program.desc.serialize_to_string())
    print("tested %f" % tested)
"""


@pytest.mark.parametrize("ways", (("none", "none"), ("cloud", "cloud"), ("0", "1")), ids=("none", "cloud", "by hand"))
def test_two_ranks_train_save_and_resume_to_the_same_bits(tmp_path, ways):
    (tmp_path / "train.py").write_text(SCRIPT)
    first, second = ([tmp_path / "train.py", tmp_path, way] for way in ways)
    ended = run_job(1, first, mpmd=[(1, second, {})], env={"FLEET_MPI_THREADS": "1"}, timeout=120)
    assert ended.code == 0, ended.story()
    digests = [re.findall(r"^sha (\w+)$", rank.out, re.M) for rank in ended.ranks]
    assert digests[0] == digests[1] and len(digests[0]) == 1, ended.story()
    assert float(re.search(r"^tested (\S+)$", ended.ranks[0].out, re.M)[1]) < 1, ended.story()
    assert {"fc_0.w_0", "fc_0.b_0"} < {path.name for path in (tmp_path / "all").iterdir()}, ended.story()
    assert (tmp_path / "model" / "__model__").exists()
