"""SyncBatchNorm: a batch norm of its own batch in one process, of all workers' in a job of equal workers."""

import numpy as np

from fleet_mpi.program.engine.compiled import CompiledProgram
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.graph.sync_batch_norm import MARK, has_marked, synchronise_batch_norm
from fleet_mpi.program.layers import classes
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.layer_containers import Sequential
from fleet_mpi.program.layers.synchronised_norm import SyncBatchNorm
from fleet_mpi.program.optimizers.plain import SGD
from tests.exact.collective_networks import batches, normed
from tests.exact.collective_workers import build, same, strategy, train


def run(*fetches, **feed):
    executor = Executor()
    executor.run(default_startup_program())
    return executor.run(feed=feed, fetch_list=list(fetches))


def marked():
    """The network ``normed`` as SyncBatchNorm layers would have made it."""
    loss = normed()
    for op in default_main_program().global_block().ops:
        if op.type == "batch_norm":
            op.attrs[MARK] = True
    return loss


def test_one_process_normalises_by_its_own_batch():
    x = static_data("x", [None, 3, 4, 4])
    values = np.random.default_rng(0).normal(2, 3, (6, 3, 4, 4)).astype("float32")
    found, want = run(SyncBatchNorm(3)(x), classes.BatchNorm2D(3)(x), x=values)
    np.testing.assert_array_equal(found, want)


def test_workers_train_as_with_the_switch_of_the_fleet():
    jobs = [build(normed, SGD(0.1), strategy(sync_batch_norm=True), 2), build(marked, SGD(0.1), strategy(), 2)]
    assert "sync_batch_norm" in [op.type for op in jobs[1].main.global_block().ops]
    assert same(*(train(job, batches(3, 2))[0][0].values(job) for job in jobs))


def test_a_compiled_program_of_a_worker_finds_the_mark_too():
    job = build(marked, SGD(0.1), strategy(), 2)
    for op in job.main.global_block().ops:
        op.type = op.type.removeprefix("sync_")
    CompiledProgram(job.main).with_data_parallel()
    assert "sync_batch_norm" in [op.type for op in job.main.global_block().ops]


def test_only_marked_ones_are_changed():
    x = static_data("x", [None, 3, 4, 4])
    out = SyncBatchNorm(3)(classes.BatchNorm2D(3)(x))
    assert has_marked(out.program) and synchronise_batch_norm(out.program, marked_only=True) == 1
    assert [op.type for op in out.program.global_block().ops] == ["batch_norm", "sync_batch_norm"]


def test_layers_are_converted_with_their_parameters():
    net = Sequential(classes.BatchNorm2D(3), classes.ReLU(), Sequential(classes.BatchNorm(3, act="relu")))
    names = [param.name for param in net.parameters()]
    assert SyncBatchNorm.convert_sync_batchnorm(net) is net
    out = net(static_data("x", [None, 3, 4, 4]))
    assert [param.name for param in net.parameters()] == names and isinstance(net[0], SyncBatchNorm)
    ops = out.program.global_block().ops
    assert [op.type for op in ops] == ["batch_norm", "relu", "batch_norm", "relu"]
    assert [bool(op.attrs.get(MARK)) for op in ops] == [True, False, True, False]
