"""Switches that cannot apply are off in the valid strategy, each with one sentence; those that go together stay."""

import pytest

from fleet_mpi.fleet.selection import ORDER, go_together, valid_strategy
from fleet_mpi.fleet.strategy import DistributedStrategy
from fleet_mpi.program.optimizers import paddle2
from fleet_mpi.program.optimizers.plain import SGD, Adam, Momentum


def valid(optimizer, workers=2, has_servers=False, **switches):
    """The switches that are on after all."""
    made = DistributedStrategy()
    for name, value in switches.items():
        setattr(made, name, value)
    found = valid_strategy(made, optimizer, workers, has_servers)
    assert all(getattr(made, name) == value for name, value in switches.items() if isinstance(value, bool)), \
        "the script's strategy was changed"
    return {name for name in (*ORDER, "sync_batch_norm") if getattr(found, name)}


@pytest.mark.parametrize("switch, optimizer, applies", (
    ("localsgd", SGD(0.1), True), ("localsgd", Momentum(0.1, 0.9), True), ("localsgd", Adam(0.1), False),
    ("adaptive_localsgd", paddle2.SGD(0.1), True), ("adaptive_localsgd", Adam(0.1), False),
    ("dgc", paddle2.Momentum(0.1, 0.9), True), ("dgc", SGD(0.1), False), ("lars", Momentum(0.1, 0.9), True),
    ("lars", Adam(0.1), False), ("lamb", Adam(0.1), True), ("lamb", SGD(0.1), False),
    ("fp16_allreduce", SGD(0.1), True)))
def test_a_switch_needs_its_optimizer(switch, optimizer, applies, capsys):
    assert valid(optimizer, **{switch: True}) == ({switch} if applies else set())
    said = capsys.readouterr().err
    assert said.count("\n") == (not applies)
    if not applies:
        assert f"DistributedStrategy.{switch} is not applied: it needs " in said
        assert f"the optimizer is {type(optimizer).__name__}" in said


@pytest.mark.parametrize("switch", ("localsgd", "adaptive_localsgd", "dgc", "fp16_allreduce", "sync_batch_norm"))
def test_what_workers_do_with_each_other_needs_several_and_no_servers(switch, capsys):
    optimizer = Momentum(0.1, 0.9)
    assert valid(optimizer, **{switch: True}) == {switch} and not capsys.readouterr().err
    assert valid(optimizer, workers=1, **{switch: True}) == set()
    assert valid(optimizer, has_servers=True, **{switch: True}) == set()
    assert f"DistributedStrategy.{switch} is not applied: it is for training without servers" in capsys.readouterr().err


@pytest.mark.parametrize("on, stays", (
    ({"amp", "recompute", "lars", "gradient_merge"}, {"amp", "recompute", "lars", "gradient_merge"}),
    ({"fp16_allreduce", "recompute", "lars"}, {"fp16_allreduce", "recompute", "lars"}),
    ({"fp16_allreduce", "localsgd"}, {"fp16_allreduce", "localsgd"}),
    ({"amp", "fp16_allreduce"}, {"amp"}),
    ({"localsgd", "adaptive_localsgd"}, {"adaptive_localsgd"}),
    ({"dgc", "amp"}, {"amp"}),
    ({"dgc", "fp16_allreduce", "recompute"}, {"dgc", "recompute"}),
    ({"localsgd", "gradient_merge", "lars"}, {"gradient_merge", "lars"})), ids=lambda one: "+".join(sorted(one)))
def test_the_longest_list_that_goes_together_wins(on, stays, capsys):
    found = valid(Momentum(0.1, 0.9), gradient_merge_configs={"k_steps": 2}, **dict.fromkeys(on, True))
    assert found == stays
    said = capsys.readouterr().err
    for lost in on - stays:
        assert said.count(f"DistributedStrategy.{lost} is not applied: it does not go together with ") == 1


def test_going_together_has_no_direction():
    assert all(go_together(one, other) == go_together(other, one) for one in ORDER for other in ORDER)


def test_merging_single_steps_is_not_applied(capsys):
    assert valid(SGD(0.1), gradient_merge=True) == set()
    assert "needs k_steps from 2 up, got 1" in capsys.readouterr().err


def test_settings_stay(monkeypatch):
    made = DistributedStrategy()
    made.localsgd, made.localsgd_configs, made.recompute_configs = True, {"k_steps": 7}, {"checkpoints": [made]}
    found = valid_strategy(made, SGD(0.1), 2)
    assert found.localsgd_configs == {"k_steps": 7, "begin_step": 1}
    assert found.recompute_configs["checkpoints"][0] is made, "variables must not be copied"


def test_other_strategies_are_given_back():
    assert valid_strategy(None, SGD(0.1)) is None
