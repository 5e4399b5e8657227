"""A job of one fleet: what strategies mean, and what each role gets to run."""

import types

import pytest

from fleet_mpi import fluid, settings
from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.job import Job, config_of
from fleet_mpi.fleet.strategy import DistributedStrategy
from fleet_mpi.fleet.transpiler_strategies import StrategyFactory
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig
from fleet_mpi.transpile.mode_choice import chosen_mode


def mode_of(strategy):
    """(mode, options) that a strategy ends in."""
    config, communicator = config_of(strategy)
    return chosen_mode(config, communicator=communicator)


def switches(a_sync, **configs):
    """A 2.x strategy."""
    made = DistributedStrategy()
    made.a_sync_configs = configs
    made.a_sync = a_sync
    return made


@pytest.mark.parametrize("strategy, mode", (
    (None, "sync"), (DistributeTranspilerConfig(), "sync"), (switches(False), "sync"), (switches(True), "async"),
    (switches(True, k_steps=5), "geo"), (StrategyFactory.create_sync_strategy(), "sync"),
    (StrategyFactory.create_async_strategy(), "async"), (StrategyFactory.create_half_async_strategy(), "half_async"),
    (StrategyFactory.create_geo_strategy(9), "geo")))
def test_every_strategy_ends_in_its_mode(strategy, mode):
    assert mode_of(strategy)[0] == mode


def test_geo_takes_its_steps_from_either_api():
    assert mode_of(switches(True, k_steps=5))[1] == mode_of(StrategyFactory.create_geo_strategy(5))[1] == {"k_steps": 5}


def test_b29_the_settings_of_the_communicator_are_wired():
    told = dict(max_merge_var_num=3, send_queue_size=7, min_send_grad_num_before_recv=4, independent_recv_thread=True)
    assert told.items() <= mode_of(switches(True, **told))[1].items()
    strategy = StrategyFactory.create_async_strategy()
    strategy.set_trainer_runtime_config(told)
    assert told.items() <= mode_of(strategy)[1].items()


def test_flags_of_the_communicator_count_where_a_strategy_says_nothing():
    with settings.override(FLAGS_communicator_send_queue_size=9, FLAGS_communicator_max_merge_var_num=4):
        asked = switches(True, max_merge_var_num=2)
        assert (mode_of(asked)[1]["send_queue_size"], mode_of(asked)[1]["max_merge_var_num"]) == (9, 2)
        assert mode_of(StrategyFactory.create_async_strategy())[1]["send_queue_size"] == 9
        assert mode_of(StrategyFactory.create_half_async_strategy())[1] == {"max_merge_var_num": 4}


def test_b30_geo_without_a_sync_is_refused():
    with pytest.raises(UsageError, match="k_steps = 5 means geo, which is asynchronous: set a_sync = True"):
        config_of(switches(False, k_steps=5))


def role(is_server, index=0):
    """A role maker of a job with two workers and two servers, as far as a job asks."""
    return types.SimpleNamespace(
        is_server=lambda: is_server, is_worker=lambda: not is_server, worker_num=lambda: 2, worker_index=lambda: index,
        server_index=lambda: index, get_pserver_endpoints=lambda: ["a:1", "b:1"], is_first_worker=lambda: index == 0)


def job(loss, **who):
    """The job of a minimised program."""
    fluid.optimizer.SGD(0.1).minimize(loss)
    return Job(role(**who), fluid.default_main_program(), fluid.default_startup_program(), None, True)


def test_a_worker_runs_the_programs_it_has_built(loss):
    made = job(loss, is_server=False, index=1)
    assert made.main is fluid.default_main_program() and made.startup is fluid.default_startup_program()
    assert "recv" in [op.type for op in made.main.global_block().ops] and made.distribution.worker == 1


def test_a_server_runs_its_own_and_leaves_the_others_alone(loss):
    made = job(loss, is_server=True, index=1)
    assert [op.type for op in made.main.global_block().ops] == ["listen_and_serv"]
    assert made.main.global_block().ops[0].attr("endpoint") == "b:1"
    assert "recv" not in [op.type for op in fluid.default_main_program().global_block().ops]


@pytest.mark.parametrize("call, is_server, said", (
    ("init_worker", True, "init_worker: this process is a server"),
    ("stop_worker", True, "stop_worker: this process is a server"),
    ("init_server", False, "init_server: this process is a worker"),
    ("run_server", False, "run_server: this process is a worker")))
def test_calls_of_the_other_role_are_refused(loss, call, is_server, said):
    with pytest.raises(UsageError, match=said):
        getattr(job(loss, is_server=is_server), call)()
