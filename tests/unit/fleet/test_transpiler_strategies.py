"""The four strategies of the 1.x parameter-server fleet: what each fixes, and how options are set."""

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.transpiler_strategies import (
    AsyncStrategy,
    GeoStrategy,
    HalfAsyncStrategy,
    StrategyFactory,
    SyncStrategy,
    TrainerRuntimeConfig,
)
from fleet_mpi.program.engine.compiled import BuildStrategy, ExecutionStrategy
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig

# strategy: half_async, completely_not_async, geo_sgd_mode, use_thread_barrier
ROWS = {SyncStrategy: (True, True, False, True), HalfAsyncStrategy: (True, False, False, True),
        AsyncStrategy: (False, False, False, False), GeoStrategy: (False, False, True, False)}


@pytest.mark.parametrize("kind", ROWS)
def test_each_strategy_fixes_its_options(kind):
    strategy = kind()
    program = strategy.get_program_config()
    assert not program.sync_mode and program.runtime_split_send_recv and strategy.get_build_strategy().async_mode
    assert (program.half_async, program.completely_not_async, program.geo_sgd_mode,
            strategy.get_execute_strategy().use_thread_barrier) == ROWS[kind]


def test_the_factory_makes_all_four():
    made = (StrategyFactory.create_sync_strategy(), StrategyFactory.create_half_async_strategy(),
            StrategyFactory.create_async_strategy(), StrategyFactory.create_geo_strategy(update_frequency=7))
    assert [type(one) for one in made] == [SyncStrategy, HalfAsyncStrategy, AsyncStrategy, GeoStrategy]
    assert made[-1].get_program_config().geo_sgd_need_push_nums == 7


def test_options_come_as_an_object_or_a_dictionary_and_the_fixed_ones_stay():
    strategy, config = SyncStrategy(), DistributeTranspilerConfig()
    config.min_block_size = 9000
    strategy.set_program_config(config)
    strategy.set_program_config({"slice_var_up": False, "sync_mode": True})
    assert strategy.get_program_config() is config
    assert (config.min_block_size, config.slice_var_up, config.sync_mode) == (9000, False, False)


@pytest.mark.parametrize("group, option, value", (
    ("trainer_runtime_config", "max_merge_var_num", 5), ("server_runtime_config", "_rpc_send_thread_num", 3),
    ("execute_strategy", "num_threads", 2), ("build_strategy", "memory_optimize", True)))
def test_every_group_takes_options(group, option, value):
    strategy = AsyncStrategy()
    getattr(strategy, f"set_{group}")({option: value})
    assert getattr(getattr(strategy, f"get_{group}")(), option) == value


def test_wrong_options_are_refused():
    with pytest.raises(UsageError, match="BuildStrategy has no option 'memory_optimise'; did you mean"):
        SyncStrategy().set_build_strategy({"memory_optimise": True})
    with pytest.raises(UsageError, match="expected a ExecutionStrategy or a dictionary, got BuildStrategy"):
        SyncStrategy().set_execute_strategy(BuildStrategy())
    SyncStrategy().set_execute_strategy(ExecutionStrategy())


def test_a_workers_queues_follow_its_threads(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "6")
    config = TrainerRuntimeConfig()
    assert (config.max_merge_var_num, config.send_queue_size, config.min_send_grad_num_before_recv) == (6, 6, 6)


def test_what_a_debugging_run_would_dump_is_told_with_all_its_options():
    strategy = StrategyFactory.create_async_strategy()
    assert strategy.get_debug_opt() == {}
    strategy.set_debug_opt({"dump_slot": 1, "dump_fields": ["fc_0.tmp_0"], "dump_fields_path": "here", "other": 1})
    assert strategy.get_debug_opt() == {
        "dump_slot": True, "dump_converter": "", "dump_fields": ["fc_0.tmp_0"], "dump_file_num": 16,
        "dump_fields_path": "here", "dump_param": []}
    strategy.get_debug_opt()["dump_param"].append("w")
    strategy.set_debug_opt({})
    assert strategy.get_debug_opt()["dump_param"] == []
