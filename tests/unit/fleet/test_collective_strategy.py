"""DistributedStrategy of the 1.x collective fleet."""

import copy

import pytest

from fleet_mpi import notices
from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.collective_strategy import DistributedStrategy
from fleet_mpi.program.engine.compiled import BuildStrategy, ExecutionStrategy


def test_it_is_a_build_strategy_with_more_options():
    strategy = DistributedStrategy()
    assert isinstance(strategy, BuildStrategy) and isinstance(strategy.exec_strategy, ExecutionStrategy)
    assert (strategy.mode, strategy.collective_mode, strategy.nccl_comm_num, strategy.use_local_sgd) == (
        "nccl2", None, 1, False)
    assert (strategy.amp_loss_scaling, strategy.recompute_checkpoints) == (32768, [])


def test_two_strategies_share_nothing():
    one, other = DistributedStrategy(), DistributedStrategy()
    one.recompute_checkpoints.append("a")
    one.exec_strategy.num_threads = 3
    assert other.recompute_checkpoints == [] and other.exec_strategy.num_threads == 0


def test_wrong_options_are_refused():
    strategy = DistributedStrategy()
    with pytest.raises(UsageError, match="mode: expected nccl2 or collective, got 'pserver'"):
        strategy.mode = "pserver"
    with pytest.raises(UsageError, match="recompute_checkpoints: expected a list of variables, got 'a'"):
        strategy.recompute_checkpoints = "a"


def test_an_unknown_option_is_kept_and_said_once(capsys, monkeypatch):
    monkeypatch.setattr(notices, "_said", set())
    for _ in range(2):
        strategy = DistributedStrategy()
        strategy.use_amp_, strategy.build_strategy = True, BuildStrategy()
    assert strategy.use_amp_ and isinstance(copy.deepcopy(strategy).build_strategy, BuildStrategy)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and "has no option 'use_amp_', nothing follows from it; did you mean 'use_amp'" in said[0]
    assert "'build_strategy'" in said[1] and "options of a BuildStrategy are set on it directly" in said[1]
    assert repr(strategy).startswith("DistributedStrategy({") and "'use_amp_': True" in repr(strategy)


def test_an_option_that_was_never_set_is_an_attribute_error():
    assert not hasattr(DistributedStrategy(), "build_strategy")
