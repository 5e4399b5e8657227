"""What a job's processes agree on, made from a program: nothing is changed, nothing drawn, the order is the
program's."""

import numpy as np
import pytest

from fleet_mpi import fluid, settings
from fleet_mpi.modes import MODES
from fleet_mpi.program.engine.scope import Scope, scope_guard
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig
from fleet_mpi.transpile.distributing import distribute, rewrite
from fleet_mpi.transpile.mode_choice import COMMUNICATOR

ENDPOINTS = ["a:1", "b:1"]


@pytest.fixture
def cut(network):
    """(main, startup) of a network of which one weight is cut."""
    fluid.optimizer.Adam(0.1).minimize(network(1300))
    return fluid.default_main_program(), fluid.default_startup_program()


def test_nothing_is_changed_until_it_is_asked_for(cut):
    before = [str(program) for program in cut]
    made, _ = distribute(*cut, DistributeTranspilerConfig(), ENDPOINTS, 2)
    assert [str(program) for program in cut] == before
    rewrite(*cut, made)
    assert [str(program) for program in cut] != before
    assert str(made.startup_source) == before[1]


def test_variables_are_placed_in_the_order_of_their_names(cut):
    made, _ = distribute(*cut, DistributeTranspilerConfig(), ENDPOINTS, 2)
    assert [one.name for one in made.placement.variables] == ["b", "v", "w"]
    assert [(shard.name, shard.server) for shard in made.placement.shards] == [
        ("b", 0), ("v", 1), ("w.block0", 0), ("w.block1", 1)]
    assert not made.row_placement.variables and made.mode.name == "sync" and made.workers == 2


def test_b36_whole_variables_are_shuffled_without_touching_numpys_generator(cut):
    config = DistributeTranspilerConfig()
    config.slice_var_up = False
    np.random.seed(4)
    expected = np.random.RandomState(4).rand()
    made, _ = distribute(*cut, config, ENDPOINTS, 2)
    assert np.random.rand() == expected
    assert [shard.name for shard in made.placement.shards] == ["b", "v", "w"]


def test_two_processes_make_the_same_of_the_same_program(cut):
    one, other = (distribute(*cut, DistributeTranspilerConfig(), ENDPOINTS, 2, worker)[0] for worker in (0, 1))
    assert one.fingerprint() == other.fingerprint()
    third, _ = distribute(*cut, DistributeTranspilerConfig(), ENDPOINTS, 3)
    assert third.fingerprint() != one.fingerprint()


@pytest.mark.parametrize("split", (True, False))
def test_flags_of_a_workers_communicator_need_not_be_the_servers(cut, split):
    config = DistributeTranspilerConfig()
    config.sync_mode, config.runtime_split_send_recv = False, split
    server, _ = distribute(*cut, config, ENDPOINTS, 2)
    with settings.override(FLAGS_communicator_max_merge_var_num=7, FLAGS_communicator_send_wait_times=3):
        worker, _ = distribute(*cut, config, ENDPOINTS, 2)
    assert worker.options != server.options and worker.fingerprint() == server.fingerprint()
    assert not any(set(half.options) & set(COMMUNICATOR) for half in (mode.server for mode in MODES.values()))


def test_options_that_servers_act_on_are_compared(cut):
    made = []
    for bound in (1, 2):
        config = DistributeTranspilerConfig()
        config.sync_mode, config.staleness = False, bound
        made.append(distribute(*cut, config, ENDPOINTS, 2)[0].fingerprint())
    assert made[0] != made[1]


def test_a_program_without_updates_is_transpiled_and_runs(network, tmp_path):
    loss = network()
    transpiler, exe = fluid.DistributeTranspiler(), fluid.Executor()
    transpiler.transpile(0, pservers=",".join(ENDPOINTS), trainers=1)
    server = transpiler.get_pserver_program("b:1")
    assert [op.type for op in server.global_block().ops] == ["listen_and_serv"] and len(server.blocks) == 2
    with scope_guard(Scope()):
        exe.run(fluid.default_startup_program())
        feed = {var.name: np.ones((2, *var.shape[1:]), var._dtype) for var in fluid.default_main_program().list_vars()
                if var.is_data}
        once, again = (exe.run(transpiler.get_trainer_program(), feed, [loss])[0].tobytes() for _ in range(2))
        fluid.io.save_persistables(exe, str(tmp_path), transpiler.get_trainer_program())
        exe.close()
    assert once == again and (tmp_path / "w").exists()


def test_counters_are_what_schedules_keep(network):
    fluid.optimizer.SGD(fluid.layers.exponential_decay(0.1, 10, 0.5)).minimize(network())
    made, _ = distribute(fluid.default_main_program(), fluid.default_startup_program(), DistributeTranspilerConfig(),
                         ENDPOINTS, 2)
    assert made.counters() == ["@LR_DECAY_COUNTER@"]
