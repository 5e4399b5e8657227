"""Whole jobs without servers: the bits of one process, and what scripts do around training."""

import re
import textwrap

import pytest

from tests.exact.averaging import digest
from tests.exact.cells import CELLS
from tests.exact.summing import summed
from tests.mpi.jobs import ROOT, run_job

SCRIPT = str(ROOT / "tests" / "exact" / "collective_flows.py")


@pytest.mark.parametrize("flow, cell, ranks", (
    ("fleet 2.x", "batch norm, dropout, lamb", 3), ("fleet 1.x", "rows, clip by global norm", 2),
    ("nccl2", "schedule 2.x warm-up", 4)))
def test_a_script_gives_the_bits_of_one_process(flow, cell, ranks):
    ended = run_job(ranks, [SCRIPT, flow, cell], timeout=100)
    assert ended.code == 0, ended.story()
    found, = re.findall(r"^state (\w+)$", ended.out, re.M)
    assert found == digest(summed(CELLS[cell], ranks)), ended.story()
    assert len(set(re.findall(r"^parameters (\w+)$", ended.out, re.M))) == 1
    assert ended.out.count("parameters") == ranks


AROUND = """
    import hashlib, os, sys
    import numpy as np
    import fleet_mpi.paddle as paddle
    from fleet_mpi import fluid
    from fleet_mpi.paddle.distributed import fleet

    paddle.enable_static()
    fleet.init(is_collective=True)
    me, count = fleet.worker_index(), fleet.worker_num()
    folder = sys.argv[1]

    # What all workers do together, by themselves and between steps.
    every = np.arange(count)
    assert fleet.util.all_gather(me) == every.tolist()
    assert fleet.util.all_reduce(np.array([me, 2.5]), "max").tolist() == [count - 1, 2.5]
    fleet.util.barrier()
    assert fleet.metrics.sum(np.array([me])).tolist() == [every.sum()]
    assert fleet.metrics.acc(np.array([me]), np.array([2.0])) == every.sum() / (2.0 * count)

    def network():
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        shown = fluid.layers.fc(fluid.layers.fc(x, 30, act="relu"), 1)
        return x, shown, fluid.layers.mean(fluid.layers.square_error_cost(shown, y))

    def batch(step, worker=me):
        rng = np.random.default_rng([step, worker])
        x = rng.normal(size=(8, 13)).astype("float32")
        return {"x": x, "y": x.sum(1, keepdims=True)}

    def digest(scope=None):
        scope = scope or fluid.global_scope()
        total = hashlib.sha256()
        for name in sorted(names):
            total.update(scope.array(name).tobytes())
        return total.hexdigest()

    def agree(text):
        assert len(set(fleet.util.all_gather(text))) == 1, text
        return text

    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x, shown, loss = network()
        fleet.distributed_optimizer(fluid.optimizer.Adam(0.01)).minimize(loss)
    names = [param.name for param in main.all_parameters()]
    exe = fluid.Executor()
    exe.run(startup)
    test = main.clone(for_test=True)
    if me == 0:  # before the first step, by one worker alone
        exe.run(test, feed=batch(0), fetch_list=[loss])
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
    first = exe.run(compiled, feed=batch(0), fetch_list=[loss])[0]
    for step in range(1, 40):
        last = exe.run(main, feed=batch(step), fetch_list=[loss])[0]
        if step == 20 and me == count - 1:
            exe.run(test, feed=batch(0), fetch_list=[loss])
    assert last.item() < first.item()
    trained = agree(digest())

    # Saving: by fleet on all workers, by fleet on worker 0 only, by fluid.io on all, by fluid.io on worker 0 only.
    fleet.save_persistables(exe, os.path.join(folder, "all"), main)
    if fleet.is_first_worker():
        fleet.save_persistables(exe, os.path.join(folder, "first"), main)
        fleet.save_inference_model(exe, os.path.join(folder, "model"), ["x"], [shown], main)
        fluid.io.save_persistables(exe, os.path.join(folder, "plain first"), main)
    for _ in range(5):
        fluid.io.save_persistables(exe, os.path.join(folder, "plain all"), main, filename="one")
    fleet.util.barrier()
    assert not [name for name in os.listdir(os.path.join(folder, "all")) if "GRAD" in name or name.endswith("part")]

    # Loading them, after other training; then both go on alike.
    for step in range(3):
        exe.run(main, feed=batch(100 + step))
    assert digest() != trained
    for place, filename in (("all", None), ("first", None), ("plain first", None), ("plain all", "one")):
        fluid.io.load_persistables(exe, os.path.join(folder, place), main, filename=filename)
        assert digest() == trained, place
        exe.run(main, feed=batch(200))
    agree(digest())
    program, fed, targets = fluid.io.load_inference_model(os.path.join(folder, "model"), exe)
    assert len(exe.run(program, feed={fed[0]: batch(0)["x"]}, fetch_list=targets)[0]) == 8

    # The same program in another scope, and a second program with other options.
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        for step in range(3):
            exe.run(main, feed=batch(step))
        agree(digest())
    again, its_startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(again, its_startup), fluid.unique_name.guard("second_"):
        _, _, loss = network()
        strategy = fleet.DistributedStrategy()
        strategy.fuse_all_reduce_ops, strategy.nccl_comm_num = False, 2
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.01), strategy).minimize(loss)
    names = [param.name for param in again.all_parameters()]
    exe.run(its_startup)
    for step in range(3):
        exe.run(again, feed=batch(step))
        exe.run(main, feed=batch(step))  # the two by turns
    agree(digest())
    if me == 0:
        fluid.io.save_params(exe, os.path.join(folder, "end"), again)
    print("done", me)
    """


def test_scripts_do_everything_around_training(tmp_path):
    (tmp_path / "around.py").write_text(textwrap.dedent(AROUND))
    ended = run_job(3, [str(tmp_path / "around.py"), str(tmp_path / "saved")], timeout=120)
    assert ended.code == 0, ended.story()
    assert [rank.out for rank in ended.ranks] == [f"done {rank}\n" for rank in range(3)], ended.story()
    assert ended.err.count("the number of all_reduce ops is 1") == 2    # a program in two scopes
    assert ended.err.count("the number of all_reduce ops is 4") == 1
