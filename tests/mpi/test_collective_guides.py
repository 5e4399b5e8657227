"""The guides' collective trainings as jobs: seed 003's ResNet-50 by fleetrun, seed 004's nccl2 mode by mpirun.

Names that a guide leaves to its reader (a network, a loader, who one is) are supplied around the listing.
"""

import re
import textwrap

import pytest

from tests.mpi.guides import are_here, listings
from tests.mpi.jobs import ROOT, run_job

# ---------------------------------------------------------------------- 003: ResNet-50 by fleetrun

# The guide keeps these in its example's folder: its network, loader and optimizer, with its numbers but the batch size.
SUPPLIED_003 = """
    import os
    import numpy as np
    import paddle
    import resnet

    class_dim, batch_size = 102, 1

    def get_train_loader(feed_list, place):
        def reader():
            for image, label in paddle.dataset.flowers.train(use_xmap=True)():
                yield np.array(image).astype("float32").reshape(3, 224, 224), np.array(label).astype("int64").reshape(1)
        loader = paddle.io.DataLoader.from_generator(feed_list=feed_list, capacity=32, use_double_buffer=True,
                                                     iterable=True)
        loader.set_sample_list_generator(paddle.batch(reader, batch_size=batch_size, drop_last=True), place)
        return loader

    def optimizer_setting():
        return paddle.optimizer.Momentum(learning_rate=0.1, momentum=0.9, parameters=None,
                                         weight_decay=paddle.regularizer.L2Decay(1e-4))
    """
RESNET_003 = """
    from fleet_mpi.examples.resnet import class_scores

    class ResNet:
        def __init__(self, layers=50):
            self.layers = layers

        def net(self, input, class_dim):
            return class_scores(input, self.layers, class_dim)
    """
LINE_003 = r"^\[Epoch (\d+), batch (\d+)\] loss: (\d+\.\d{5}), acc1: [01]\.\d{5}, acc5: [01]\.\d{5}$"


def write(folder, **modules):
    """Scripts by name, in a folder."""
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(code))


@are_here
def test_seed_003_trains_resnet_50_on_two_ranks_by_the_guides_command(tmp_path):
    listing = listings("003")[4]
    assert "epoch = 10" in listing
    write(tmp_path, resnet=RESNET_003, train_fleet_static="\n".join((
        textwrap.dedent(SUPPLIED_003), listing.replace("epoch = 10", "epoch = 1"), "train_resnet()\n")))
    ended = run_job(None, ["-m", "fleet_mpi.launch", "--gpus=0,1", "train_fleet_static.py"], via="command",
                    cwd=tmp_path,
                    env={"DATA_HOME": str(tmp_path), "FLEET_MPI_SYNTHETIC_SAMPLES": "6", "FLEET_MPI_SEED": "3"},
                    timeout=200)
    assert ended.code == 0, ended.story()
    told = [re.findall(LINE_003, (tmp_path / "log" / f"workerlog.{rank}").read_text(), re.M) for rank in (0, 1)]
    for lines in told:
        assert [(epoch, batch) for epoch, batch, _ in lines] == [("0", str(number))
                                                                 for number in range(6)], ended.story()
        # At a start that knows no class, about the logarithm of 102.
        assert 3 < float(lines[0][2]) < 7, ended.story()
    assert re.findall(LINE_003, ended.out, re.M) == told[0], ended.story()
    assert "Find all_reduce operators: 161." in ended.err, ended.story()
    assert "-----------  Configuration Arguments -----------" in ended.err, ended.story()
    assert "Distributed Envs" in ended.err, ended.story()


HALVES = ROOT / "tests" / "exact" / "resnet_halves.py"


def test_two_ranks_with_half_batches_come_to_the_bits_of_one_process_that_averages_the_halves():
    env = {"FLEET_MPI_THREADS": "1"}  # the promise holds at equal numbers of threads
    ranks = run_job(2, [HALVES, "ranks"], env=env, timeout=120)
    alone = run_job(None, [HALVES, "alone"], env=env, via="command")
    assert (ranks.code, alone.code) == (0, 0), ranks.story() + alone.story()
    expected, = re.findall(r"^parameters (\w+) alone$", alone.out, re.M)
    for rank in ranks.ranks:
        found = re.findall(r"^parameters (\w+) (.+)$", rank.out, re.M)
        assert [way for _, way in found] == ["transpiler", "fleet", "fleet2", "fleet2 fuse_grad_size_in_MB=1",
                                             "fleet2 nccl_comm_num=2"], ranks.story()
        assert {digest for digest, _ in found} == {expected}, ranks.story() + alone.story()


# ---------------------------------------------------------------------- 004: mode nccl2 by mpirun

SUPPLIED_004 = """
    import hashlib, sys
    import numpy as np, paddle.fluid as fluid
    trainer_id, endpoint = int(sys.argv[1]), sys.argv[2]
    x = fluid.layers.data(name="x", shape=[13])
    y = fluid.layers.data(name="y", shape=[1])
    cost = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(fluid.layers.fc(x, 50), 1), y))
    fluid.optimizer.Momentum(0.005, 0.9).minimize(cost)
    main_program, startup_program = fluid.default_main_program(), fluid.default_startup_program()
    startup_program.random_seed = 1 + trainer_id
    """
TRAINING_004 = """
    exe = fluid.Executor(fluid.CUDAPlace(0))
    exe.run(startup_program)
    draw = np.random.RandomState(trainer_id)
    for _ in range(30):
        rows = draw.normal(size=(20, 13)).astype("float32")
        loss, = exe.run(main_program, feed={"x": rows, "y": rows.sum(1, keepdims=True)}, fetch_list=[cost])
        print("loss %f" % loss)
    values = [np.array(fluid.global_scope().find_var(p.name).get_tensor()) for p in main_program.all_parameters()]
    print("sha", hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest())
    """


@are_here
@pytest.mark.parametrize("changed", (("", ""), ('"nccl2"', '"collective"')), ids=("nccl2", "collective"))
def test_seed_004_trains_without_servers(tmp_path, changed):
    listing = listings("004")[1].replace('current_endpoint="192.168.0.1:6174"', "current_endpoint=endpoint")
    assert 'config.mode = "nccl2"' in listing and "endpoint=endpoint" in listing
    write(tmp_path, train="\n".join(map(textwrap.dedent, (SUPPLIED_004, listing.replace(*changed), TRAINING_004))))
    words = ["-m", "fleet_mpi", tmp_path / "train.py"]
    ended = run_job(1, [*words, "0", "192.168.0.1:6174"], mpmd=[(1, [*words, "1", "192.168.0.2:6174"], {})])
    assert ended.code == 0, ended.story()
    losses = [[float(loss) for loss in re.findall(r"^loss (\S+)$", rank.out, re.M)] for rank in ended.ranks]
    assert losses[0] != losses[1] and all(one[-1] < 0.5 * one[0] for one in losses), ended.story()
    first, second = (re.findall(r"^sha (\w+)$", rank.out, re.M) for rank in ended.ranks)
    assert first == second and len(first) == 1, ended.story()
