"""The programs of local SGD: no gradient is sent, and the transpiler's mode makes them too."""

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.fluid.transpiler import DistributeTranspiler, DistributeTranspilerConfig
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.optimizers.plain import SGD
from tests.exact.collective_networks import line
from tests.exact.collective_workers import build, strategy


def test_ways_are_summed_and_not_gradients():
    job = build(line, SGD(0.1), strategy(localsgd=True), 2)
    main, body = job.main.blocks
    assert not [op for op in main.ops if op.type in ("c_allreduce_sum", "c_sync_comm_stream")]
    assert [op.type for op in main.ops][-2:] == ["local_sgd_is_due", "conditional_block"]
    assert [op.input("X") for op in body.ops if op.type == "c_allreduce_sum"] == [[one.name]
                                                                                  for one in job.plan.gradients]
    assert {one.name for one in job.plan.gradients} == {
        param.name + "@WAY@GRAD" for param in job.main.all_parameters()}
    assert not [op for op in main.ops if op.type == "scale"], "the loss is not shared out"


def test_all_begin_with_the_same_snapshot():
    startup = [op for op in build(line, SGD(0.1), strategy(localsgd=True), 2).startup.global_block().ops]
    broadcast = {op.input("X")[0] for op in startup if op.type == "c_broadcast"}
    assert {"fc_0.w_0", "fc_0.w_0@SNAPSHOT", "@LOCAL_SGD@Last"} <= broadcast


def test_the_transpiler_has_a_mode_for_it():
    SGD(0.1).minimize(line())
    config = DistributeTranspilerConfig()
    config.mode, config.collective_mode = "collective", "local_sgd"
    DistributeTranspiler(config).transpile(0, trainers="a:1,b:2", current_endpoint="a:1")
    types = [op.type for op in default_main_program().global_block().ops]
    assert types[-2:] == ["local_sgd_is_due", "conditional_block"]
    assert "c_broadcast" in [op.type for op in default_startup_program().global_block().ops]


@pytest.mark.parametrize("wrong", ({"k_steps": 0}, {"begin_step": -1}))
def test_schedules_without_steps_are_refused(wrong):
    with pytest.raises(UsageError, match="local SGD: expected k_steps from 1"):
        build(line, SGD(0.1), strategy(localsgd=True, localsgd_configs=wrong), 2)
