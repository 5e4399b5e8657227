"""DistributedStrategy (2.x): switches and settings with the original's names, types and defaults."""

import copy

import pytest

from fleet_mpi.errors import UnknownName, UsageError
from fleet_mpi.fleet.strategy import DistributedStrategy


def test_a_switch_keeps_its_value_and_its_type():
    strategy = DistributedStrategy()
    assert strategy.a_sync is True and strategy.amp is False
    strategy.a_sync = False
    assert strategy.a_sync is False
    with pytest.raises(UsageError, match="a_sync: expected True or False, got 1"):
        strategy.a_sync = 1


def test_settings_are_merged_key_by_key():
    strategy = DistributedStrategy()
    strategy.a_sync_configs = {"k_steps": 100}
    strategy.a_sync_configs = {"send_queue_size": 4}
    assert (strategy.a_sync_configs["k_steps"], strategy.a_sync_configs["send_queue_size"]) == (100, 4)


def test_a_sync_leaves_the_settings_alone():
    strategy = DistributedStrategy()
    strategy.a_sync_configs = {"k_steps": 100}
    strategy.a_sync = True
    assert strategy.a_sync_configs["k_steps"] == 100


def test_a_list_given_twice_replaces_the_first():
    strategy = DistributedStrategy()
    strategy.recompute_configs = {"checkpoints": ["a"]}
    strategy.recompute_configs = {"checkpoints": ["b"]}
    assert strategy.recompute_configs["checkpoints"] == ["b"]


def test_what_is_read_cannot_change_the_strategy():
    strategy = DistributedStrategy()
    strategy.recompute_configs["checkpoints"].append("a")
    assert strategy.recompute_configs["checkpoints"] == []


@pytest.mark.parametrize("change, said", (
    (lambda one: setattr(one, "async", True), "has no option 'async'; did you mean"),
    (lambda one: one.a_sink, "has no option 'a_sink'; did you mean 'a_sync'"),
    (lambda one: setattr(one, "a_sync_configs", {"k_step": 1}), "a_sync_configs has no key 'k_step'; did you mean")))
def test_an_unknown_option_says_the_nearest(change, said):
    with pytest.raises(UnknownName, match=said):
        change(DistributedStrategy())


@pytest.mark.parametrize("name, key", (("a_sync_configs", "k_steps"), ("localsgd_configs", "k_steps"),
                                       ("gradient_merge_configs", "k_steps"),
                                       ("adaptive_localsgd_configs", "init_k_steps")))
def test_steps_below_0_are_refused(name, key):
    with pytest.raises(UsageError, match=rf"{name}\['{key}'\]: expected a whole number from 0 up, got -1"):
        setattr(DistributedStrategy(), name, {key: -1})


@pytest.mark.parametrize("settings", (3, [("k_steps", 1)]))
def test_settings_that_are_no_dictionary_are_refused(settings):
    with pytest.raises(UsageError, match="a_sync_configs: expected a dictionary"):
        DistributedStrategy().a_sync_configs = settings


def test_a_copy_is_apart_and_what_changed_is_printed():
    strategy = DistributedStrategy()
    strategy.amp = True
    twin = copy.deepcopy(strategy)
    twin.lamb = True
    assert not strategy.lamb and strategy.changed() == {"amp": True}
    assert "amp = True" in repr(strategy) and "lamb" not in repr(strategy)
