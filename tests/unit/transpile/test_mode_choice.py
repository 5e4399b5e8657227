"""Every flag that says when parameters move ends in one name with its options."""

import pytest

from fleet_mpi import modes, settings
from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.transpiler_strategies import AsyncStrategy, GeoStrategy, HalfAsyncStrategy, SyncStrategy
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig
from fleet_mpi.transpile.mode_choice import COMMUNICATOR, chosen_mode


def config(**options):
    """A config with these options."""
    made = DistributeTranspilerConfig()
    for name, value in options.items():
        setattr(made, name, value)
    return made


NOT_SYNC = dict(sync_mode=False)


@pytest.mark.parametrize("options, mode", (
    ({}, "sync"),
    (NOT_SYNC, "half_async"),
    (dict(NOT_SYNC, half_async=True, runtime_split_send_recv=True), "half_async"),
    (dict(NOT_SYNC, runtime_split_send_recv=True), "async"),
    (dict(NOT_SYNC, completely_not_async=True, half_async=True, runtime_split_send_recv=True), "sync"),
    (dict(NOT_SYNC, geo_sgd_mode=True), "geo"),
    (dict(geo_sgd_mode=True), "geo"),
    (dict(NOT_SYNC, enable_dc_asgd=True), "delay_compensated"),
    (dict(NOT_SYNC, staleness=3), "bounded_staleness")))
def test_options_mean_one_mode_whose_halves_take_them(options, mode):
    name, chosen = chosen_mode(config(**options))
    assert name == mode
    modes.server_half(name, chosen, workers=2)


@pytest.mark.parametrize("strategy, mode", ((SyncStrategy, "sync"), (AsyncStrategy, "async"),
                                            (HalfAsyncStrategy, "half_async"), (GeoStrategy, "geo")))
def test_strategies_of_the_fleet_mean_what_they_are_called(strategy, mode):
    assert chosen_mode(strategy().get_program_config())[0] == mode


def test_b11_the_argument_of_transpile_decides_too():
    assert chosen_mode(config(), sync_mode=False)[0] == "half_async"
    assert chosen_mode(config(runtime_split_send_recv=True), sync_mode=False)[0] == "async"


def test_geo_takes_its_number_of_steps():
    assert chosen_mode(config(geo_sgd_mode=True, geo_sgd_need_push_nums=7))[1] == {"k_steps": 7}
    with pytest.raises(UsageError, match="geo_sgd_need_push_nums: expected a whole number from 1 up, got 0"):
        chosen_mode(config(geo_sgd_mode=True, geo_sgd_need_push_nums=0))


def test_delay_compensation_takes_its_weights():
    chosen = chosen_mode(config(sync_mode=False, enable_dc_asgd=True, dc_asgd_lambda=0.5, dc_asgd_adaptive=True))[1]
    assert chosen["lambda_"] == 0.5 and chosen["adaptive"] is True


def test_staleness_may_come_from_the_environment():
    with settings.override(FLEET_MPI_STALENESS=2):
        assert chosen_mode(config(sync_mode=False)) == ("bounded_staleness", {"bound": 2})
        assert chosen_mode(config(sync_mode=False, staleness=0)) == ("bounded_staleness", {"bound": 0})


def test_the_communicators_settings_reach_the_mode():
    told = {**COMMUNICATOR, "max_merge_var_num": 5, "send_queue_size": 9}
    asynchronous = config(sync_mode=False, runtime_split_send_recv=True)
    assert chosen_mode(asynchronous, communicator=told)[1]["send_queue_size"] == 9
    assert chosen_mode(config(sync_mode=False, half_async=True), communicator=told)[1]["max_merge_var_num"] == 5


@pytest.mark.parametrize("options, said", (
    (dict(enable_dc_asgd=True), "enable_dc_asgd corrects asynchronous training: set sync_mode = False"),
    (dict(runtime_split_send_recv=True), "runtime_split_send_recv is for asynchronous training")))
def test_options_that_contradict_each_other_are_refused(options, said):
    with pytest.raises(UsageError, match=said):
        chosen_mode(config(**options))
