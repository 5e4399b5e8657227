"""A worker's program, compiled with sync_batch_norm, normalises by all workers' batches; others stay as they are."""

import pytest

from fleet_mpi.program.engine.compiled import BuildStrategy, CompiledProgram
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.optimizers.plain import SGD
from tests.exact.collective_networks import batches, normed
from tests.exact.collective_workers import build, same, strategy, train


@pytest.fixture
def synchronised():
    """The build strategy."""
    made = BuildStrategy()
    made.sync_batch_norm = True
    return made


def test_a_compiled_program_trains_as_with_the_switch_of_the_fleet(synchronised):
    jobs = [build(normed, SGD(0.1), strategy(sync_batch_norm=switch), 2) for switch in (False, True)]
    CompiledProgram(jobs[0].main).with_data_parallel(build_strategy=synchronised)
    assert same(*(train(job, batches(3, 2))[0][0].values(job) for job in jobs))


def test_one_process_keeps_its_batch_norms(synchronised):
    SGD(0.1).minimize(normed())
    CompiledProgram(default_main_program()).with_data_parallel(build_strategy=synchronised)
    assert "batch_norm" in [op.type for op in default_main_program().global_block().ops]
