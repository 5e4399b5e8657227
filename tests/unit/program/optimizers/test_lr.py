"""fleet_mpi/program/optimizers/lr.py: 50 epochs of every scheduler of 2.x."""

import math

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.optimizers import lr

EPOCHS = 50

SCHEDULERS = [
    (lambda: lr.NoamDecay(64, 10), lambda t: 64 ** -0.5 * min(t ** -0.5 if t else 1.0, t * 10 ** -1.5)),
    (lambda: lr.PiecewiseDecay([10, 30], [0.5, 0.2, 0.1]), lambda t: 0.5 if t < 10 else 0.2 if t < 30 else 0.1),
    (lambda: lr.NaturalExpDecay(0.5, 0.1), lambda t: 0.5 * math.exp(-0.1 * t)),
    (lambda: lr.InverseTimeDecay(0.5, 0.1), lambda t: 0.5 / (1 + 0.1 * t)),
    (lambda: lr.ExponentialDecay(0.5, 0.9), lambda t: 0.5 * 0.9 ** t),
    (lambda: lr.PolynomialDecay(0.5, 20, 0.01, 2.0), lambda t: 0.49 * (1 - min(t, 20) / 20) ** 2 + 0.01),
    (lambda: lr.PolynomialDecay(0.5, 20, 0.01, cycle=True),
     lambda t: 0.49 * (1 - t / (20 * max(1, math.ceil(t / 20)))) + 0.01),
    (lambda: lr.LinearWarmup(0.5, 10, 0.1, 0.3), lambda t: 0.1 + 0.2 * t / 10 if t < 10 else 0.5),
    (lambda: lr.LinearWarmup(lr.ExponentialDecay(0.5, 0.9), 10, 0.1, 0.3),
     lambda t: 0.1 + 0.2 * t / 10 if t < 10 else 0.5 * 0.9 ** (t - 10)),
    (lambda: lr.MultiStepDecay(0.5, [10, 30], 0.2), lambda t: 0.5 * 0.2 ** ((t >= 10) + (t >= 30))),
    (lambda: lr.StepDecay(0.5, 7, 0.5), lambda t: 0.5 * 0.5 ** (t // 7)),
    (lambda: lr.LambdaDecay(0.5, lambda epoch: 1 / (1 + epoch)), lambda t: 0.5 / (1 + t)),
    (lambda: lr.CosineAnnealingDecay(0.5, 20, 0.1), lambda t: 0.1 + 0.4 * (1 + math.cos(math.pi * t / 20)) / 2),
]
IDS = [type(make()).__name__ for make, _ in SCHEDULERS]


@pytest.mark.parametrize("make, formula", SCHEDULERS, ids=IDS)
def test_every_epoch_equals_the_formula(make, formula):
    scheduler, found = make(), []
    for _ in range(EPOCHS):
        found.append(scheduler())
        scheduler.step()
    assert found == pytest.approx([formula(t) for t in range(EPOCHS)], rel=1e-12)


@pytest.mark.parametrize("make, formula", SCHEDULERS, ids=IDS)
def test_a_scheduler_goes_on_from_its_state(make, formula):
    one, other = make(), make()
    for _ in range(13):
        one.step()
    other.set_state_dict(one.state_dict())
    assert other() == one()
    one.step()
    other.step()
    assert other() == one() == pytest.approx(formula(14))


def test_an_epoch_can_be_given():
    scheduler = lr.ExponentialDecay(1.0, 0.5)
    scheduler.step(3)
    assert (scheduler(), scheduler.last_lr, scheduler.last_epoch) == (0.125, 0.125, 3)


def test_the_rate_falls_when_a_metric_stands_still():
    scheduler, found = lr.ReduceOnPlateau(1.0, factor=0.5, patience=2, cooldown=1, min_lr=0.25), []
    for metric in [5.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]:
        scheduler.step(metric)
        found.append(scheduler())
    # Three bad steps halve it, one step of rest follows; never below min_lr.
    assert found == [1.0] * 4 + [0.5] * 4 + [0.25] * 6


def test_a_growing_metric_is_good_in_mode_max():
    scheduler = lr.ReduceOnPlateau(1.0, mode="max", patience=0)
    for metric in (1.0, 2.0, 3.0):
        scheduler.step(metric)
    assert scheduler() == 1.0
    scheduler.step(3.0)
    assert scheduler() == pytest.approx(0.1)


@pytest.mark.parametrize("make, text", [
    (lambda: lr.ExponentialDecay("0.1", 0.5), "learning_rate must be a number"),
    (lambda: lr.ExponentialDecay(-0.1, 0.5),
     "ExponentialDecay: learning_rate must be a finite number from 0 up, got -0.1"),
    (lambda: lr.ReduceOnPlateau(float("nan")), "ReduceOnPlateau: learning_rate must be a finite number"),
    (lambda: lr.LinearWarmup(float("inf"), 2, 0.0, 0.1), "LinearWarmup: learning_rate must be a finite number"),
    (lambda: lr.PiecewiseDecay([1], [0.1]), "one value more"),
    (lambda: lr.MultiStepDecay(0.1, [3, 2]), "rising milestones"),
    (lambda: lr.LinearWarmup(0.1, 5, 0.2, 0.1), "must be above start_lr"),
    (lambda: lr.LambdaDecay(0.1, 0.5), "must be a function"),
    (lambda: lr.ReduceOnPlateau(0.1, mode="least"), "mode must be"),
    (lambda: lr.StepDecay(0.1, 5).set_state_dict({"last_epoch": 3}), "'last_lr' is missing"),
])
def test_what_makes_no_sense_is_refused(make, text):
    with pytest.raises(UsageError, match=text):
        make()
