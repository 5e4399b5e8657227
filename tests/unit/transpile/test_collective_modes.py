"""nccl2 and collective: the worker's programs show the original's ops; wrong arguments are refused."""

import pytest

from fleet_mpi import fluid
from fleet_mpi.collective.choosing import Options
from fleet_mpi.errors import NotBuilt, UnknownName, UsageError
from fleet_mpi.fluid.transpiler import DistributeTranspiler, DistributeTranspilerConfig
from fleet_mpi.parameter_server.agreement import difference
from fleet_mpi.transpile.collective import plan_of

WORKERS = "127.0.0.1:6174,127.0.0.1:6175"


@pytest.fixture
def programs():
    """A minimised program and its startup program."""
    return minimised(fluid.optimizer.SGD(0.1))


def minimised(optimizer):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        optimizer.minimize(loss)
    return main, startup


def transpiled(programs, trainer_id=0, trainers=WORKERS, endpoint="127.0.0.1:6174", **told):
    config = DistributeTranspilerConfig()
    for name, value in told.items():
        setattr(config, name, value)
    transpiler = DistributeTranspiler(config)
    transpiler.transpile(trainer_id, programs[0], trainers=trainers, startup_program=programs[1],
                         current_endpoint=endpoint)
    return transpiler.get_trainer_program()


def types(program):
    return [op.type for op in program.global_block().ops]


@pytest.mark.parametrize("mode, shown", (("nccl2", ["gen_nccl_id"]), ("collective", ["c_gen_nccl_id", "c_comm_init"])))
def test_each_gradient_is_summed_before_the_updates(programs, mode, shown):
    main = transpiled(programs, mode=mode)
    found = types(main)
    assert main is programs[0] and found.count("c_allreduce_sum") == 2
    backward = found[found.index("fill_constant"):]
    assert backward[1] == "scale" and main.global_block().ops[found.index("scale")].attrs["scale"] == 0.5
    assert backward[-3:] == ["c_sync_comm_stream", "sgd", "sgd"]
    startup = types(programs[1])
    assert startup[:len(shown)] == shown and startup.count("c_broadcast") == 3   # two parameters, the learning rate


def test_rings_are_those_of_the_communicators(programs):
    transpiled(programs, mode="collective", nccl_comm_num=2)
    assert types(programs[1])[:4] == ["c_gen_nccl_id", "c_comm_init"] * 2


def test_one_worker_is_left_as_it_was(programs):
    before = types(programs[0])
    assert types(transpiled(programs, trainers="127.0.0.1:6174", mode="nccl2")) == before


@pytest.mark.parametrize("wrong, says", (
    (dict(trainers=""), "expected the workers' endpoints"),
    (dict(trainers="a:1,a:1"), "the same endpoint twice"),
    (dict(trainer_id=2), "trainer_id: expected a number below 2, got 2"),
    (dict(mode="collective", trainers="a:1"), "needs two workers or more"),
    (dict(mode="collective", endpoint="c:1"), "current_endpoint 'c:1' is not one of the workers'"),
    (dict(collective_mode="ring"), "collective_mode 'ring'")))
def test_what_makes_no_job_is_refused_and_changes_nothing(programs, wrong, says):
    before = types(programs[0]), types(programs[1])
    with pytest.raises((UsageError, UnknownName), match=says):
        transpiled(programs, **{"mode": "nccl2", **wrong})
    assert (types(programs[0]), types(programs[1])) == before


def test_a_program_is_transpiled_once(programs):
    transpiled(programs, mode="nccl2")
    with pytest.raises(UsageError, match="transpiled before"):
        transpiled(programs, mode="nccl2")


def test_workers_that_would_update_otherwise_are_told_apart():
    def text(mu):
        return plan_of(minimised(fluid.optimizer.Momentum(0.1, mu))[0], 2, 0).fingerprint()
    assert not difference(text(0.9), text(0.9))
    assert difference(text(0.5), text(0.9)).startswith("fc_0.b_0 (update) is momentum(mu=0.5")


@pytest.mark.parametrize("wrong", (dict(comms=0), dict(fuse_mb=-1), dict(last_mb=-1)))
def test_options_without_sense_are_refused(wrong):
    with pytest.raises(UsageError, match="expected"):
        Options(**wrong)


def test_tables_with_a_row_for_any_id_are_refused_among_equal_workers():
    ids = fluid.data("ids", [None, 1], "int64")
    rows = fluid.contrib.layers.sparse_embedding(ids, [10, 4])
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(rows))
    assert plan_of(fluid.default_main_program(), 1, 0)
    with pytest.raises(NotBuilt, match="equal workers .* have none with a row for any id: train with servers"):
        plan_of(fluid.default_main_program(), 2, 0)
