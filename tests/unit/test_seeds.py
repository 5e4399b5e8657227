"""The Python listings of the guides in ``../shared/seeds`` run as they stand, as far as one process can.

Names that a guide leaves to its reader (a network, a reader, who one is) are supplied here, in front of the
listing. What needs several processes must be refused with a sentence.
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.mpi.guides import SUPPLIED_000, are_here, listings

ROOT = Path(__file__).parents[2]
pytestmark = are_here


def run(folder, *parts, **modules):
    """Run the parts as one script under ``python -m fleet_mpi``, with modules of the script's own beside it."""
    for name, code in {"script": "\n".join(map(textwrap.dedent, parts)), **modules}.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(code))
    environment = {"PATH": "", "PYTHONPATH": str(ROOT), "DATA_HOME": str(folder), "FLEET_MPI_SEED": "1"}
    return subprocess.run([sys.executable, "-m", "fleet_mpi", "script.py"], cwd=folder, capture_output=True, text=True,
                          timeout=300, env=environment)


def succeeded(ended):
    """Whether a script came to its end; its own words otherwise."""
    assert ended.returncode == 0, ended.stderr
    return True


def test_every_listing_is_found():
    assert [len(listings(number)) for number in ("000", "001", "002", "003", "004")] == [4, 5, 4, 5, 2]


def test_seed_000_trains_one_worker(tmp_path):
    importing, _, minimizing, training = listings("000")
    ended = run(tmp_path, importing, SUPPLIED_000, minimizing, training)
    assert succeeded(ended)
    lines = ended.stdout.splitlines()
    assert len(lines) == 20 and re.fullmatch(r"Pass 9, cost = \d.\d+, auc = \d.\d+, batch_auc = \d.\d+", lines[-1])


def test_seed_000_with_three_workers_begun_by_hand_is_told_the_command_to_use(tmp_path):
    importing, roles, *_ = listings("000")
    ended = run(tmp_path, importing,
                "from paddle.fluid.incubate.fleet.base.role_maker import Role, UserDefinedRoleMaker", roles)
    assert ended.returncode == 3
    assert "this process is worker 0 of a job with 3 worker(s)" in ended.stderr
    assert "-m fleet_mpi script.py : -np 1" in ended.stderr.splitlines()[-1]


def test_seed_001_trains_wide_and_deep_until_the_data_end(tmp_path):
    ended = run(tmp_path, "import numpy as np, model", *listings("001"), model="""
        import __main__
        import paddle
        import paddle.fluid as fluid

        def net():
            global loss
            deep = fluid.layers.data(name="deep", shape=[1], dtype="int64", lod_level=1)
            wide = fluid.layers.data(name="wide", shape=[1], dtype="int64", lod_level=1)
            label = fluid.layers.data(name="label", shape=[1], dtype="int64")
            __main__.reader = fluid.io.PyReader(feed_list=[deep, wide, label], capacity=8, iterable=False)
            pooled = [fluid.layers.sequence_pool(
                fluid.contrib.layers.sparse_embedding(input=ids, size=[10, 4]), pool_type="sum")
                for ids in (deep, wide)]
            predict = fluid.layers.fc(pooled, 2, act="softmax")
            loss = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=label))
            return [deep, wide, label], predict, loss
        """, reader="""
        import random

        def data_reader():
            draw = random.Random(0)
            def samples():
                for _ in range(20):
                    yield ([draw.randrange(10 ** 10) for _ in range(3)], [draw.randrange(10 ** 10)],
                           [draw.randrange(2)])
            return samples
        """)
    assert succeeded(ended)
    assert len(re.findall(r"TRAIN ---> pass: 0 loss: \d\.\d+\n", ended.stdout)) == 5


def test_seed_002_on_one_machine_runs_unchanged(tmp_path):
    assert succeeded(run(tmp_path, listings("002")[0]))
    assert {path.name for path in (tmp_path / "fit_a_line.model").iterdir()} >= {"fc_0.w_0", "fc_0.b_0"}


NETWORK = """
    import paddle.v2 as paddle, paddle.fluid as fluid
    x = fluid.layers.data(name="x", shape=[13])
    y = fluid.layers.data(name="y", shape=[1])
    avg_cost = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    sgd_optimizer = fluid.optimizer.SGD(learning_rate=0.001)
    exe = fluid.Executor(fluid.CPUPlace())
    """


def test_seed_002_transpiles_for_one_trainer(tmp_path):
    _, minimizing, _, transpiling = listings("002")
    who = 'trainer_id, trainers, training_role, pserver = 0, 1, "TRAINER", "127.0.0.1:6174"'
    assert succeeded(run(tmp_path, NETWORK, minimizing, who, transpiling,
                         "assert t.get_trainer_program() is fluid.default_main_program()"))


def test_seed_002_started_by_hand_tells_the_one_mpirun_to_use_instead(tmp_path):
    who = 'pserver_endpoints = current_endpoint = "127.0.0.1:6174"'
    ended = run(tmp_path, NETWORK, who, listings("002")[2])
    assert ended.returncode == 3
    assert re.search(r"mpirun .*-np 1 .* : -np 1 .* : -np 1 ", ended.stderr), ended.stderr


SUPPLIED_003 = """
    import os
    import numpy as np
    import paddle
    from paddle.distributed import fleet
    class_dim = 10

    class resnet:
        class ResNet:
            def __init__(self, layers):
                assert layers == 50

            def net(self, input, class_dim):
                made = paddle.static.nn.conv2d(input, 4, 7, stride=4, padding=3, act="relu")
                made = paddle.nn.functional.adaptive_avg_pool2d(made, 1)
                return paddle.static.nn.fc(made, class_dim)

    def get_train_loader(feed_list, place):
        images = np.random.RandomState(0).rand(2, 3, 224, 224).astype("float32")
        loader = paddle.io.DataLoader.from_generator(feed_list=feed_list, capacity=2, iterable=True)
        batch = [(image, label) for label, image in enumerate(images)]
        return loader.set_sample_list_generator(lambda: iter([batch]), places=place)

    def optimizer_setting():
        return paddle.optimizer.Momentum(learning_rate=0.01, momentum=0.9,
                                         weight_decay=paddle.regularizer.L2Decay(0.0001))
    """


@pytest.mark.parametrize("number", (0, 4), ids=("one device", "fleet"))
def test_seed_003_trains_a_network_on_images(tmp_path, number):
    ended = run(tmp_path, SUPPLIED_003, listings("003")[number], "train_resnet()")
    assert succeeded(ended)
    losses = [float(loss) for loss in re.findall(r"loss: (\d+\.\d+), acc1: \d\.\d+, acc5: \d\.\d+", ended.stdout)]
    assert len(losses) == 10 and losses[-1] < losses[0]


def test_seed_003_takes_the_three_steps_one_by_one(tmp_path):
    _, *steps, _ = listings("003")
    assert succeeded(run(tmp_path, SUPPLIED_003, "optimizer = optimizer_setting()", *steps,
                         "assert callable(optimizer.minimize)"))


@pytest.mark.parametrize("number", (0, 1), ids=("pserver", "nccl2"))
def test_seed_004_describes_a_job(tmp_path, number):
    who = ("trainer_id, main_program = 0, fluid.default_main_program()\n"
           "startup_program = fluid.default_startup_program()")
    assert succeeded(run(tmp_path, NETWORK, "sgd_optimizer.minimize(avg_cost)", who, listings("004")[number]))
