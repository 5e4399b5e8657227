"""Delay compensation: the formula by hand, its bound, the adaptive factor, and that it helps."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.placement import Variable
from tests.unit.modes.loop import Loop

VARIABLE = (Variable("p", (5,)),)
START = np.array([1.0, -2.0, 0.5, 3.0, 0.0], "f4")
OTHER = np.array([0.5, 1.0, -2.0, 0.25, 1.0], "f4")
OWN = np.array([2.0, -1.0, 0.5, -4.0, 0.0], "f4")


def compensated(**told):
    """The gradient a server applies for worker 0 after worker 1's came between; rate 1, SGD."""
    loop = Loop("delay_compensated", told, 1, 2, VARIABLE, rate=1.0)
    loop.store({"p": START})
    for client in loop.clients:
        client.transport.on_wait = loop.pump
        client.collect(client.pull())
    loop.grads(1)["p"][...] = OTHER
    loop.halves[1].after_backward()
    between = loop.values()["p"].copy()
    assert (between == START - OTHER).all()
    loop.grads(0)["p"][...] = OWN
    loop.halves[0].after_backward()
    return between - loop.values()["p"], loop


def test_the_compensation_is_lambda_g_g_times_the_way_since_the_pull():
    applied, _ = compensated(bound=float("inf"))
    assert np.allclose(applied, OWN + OWN * OWN * -OTHER)
    applied, _ = compensated(lambda_=0.25, bound=float("inf"))
    assert np.allclose(applied, OWN + 0.25 * OWN * OWN * -OTHER)


def test_lambda_one_is_what_it_is_unless_told():
    assert np.allclose(compensated(bound=100.0)[0], compensated(lambda_=1, bound=float("inf"))[0])


def test_without_lambda_it_is_plain_asynchronous_training():
    assert (compensated(lambda_=0.0)[0] == OWN).all()


@pytest.mark.parametrize("bound", (0.0, 0.5, 1.0, 3.0))
def test_the_guard_bounds_each_element_by_its_gradient(bound):
    applied, _ = compensated(bound=bound)
    expected = OWN + np.clip(OWN * -OTHER, -bound, bound) * OWN
    assert np.allclose(applied, expected)
    assert (np.abs(applied - OWN) <= bound * np.abs(OWN) * (1 + 1e-6)).all()


def test_the_adaptive_factor_is_lambda_over_the_root_of_the_mean_square():
    told = dict(lambda_=0.3, adaptive=True, decay=0.9, epsilon=0.01, bound=float("inf"))
    applied, loop = compensated(**told)
    mean = 0.1 * OTHER.astype("f8") ** 2
    mean = 0.9 * mean + 0.1 * OWN.astype("f8") ** 2
    factor = 0.3 / np.sqrt(mean + 0.01)
    assert np.allclose(applied, OWN + factor * OWN * OWN * -OTHER, rtol=1e-5)
    kept = loop.servers[0].mode.mean_square[:20].view("f4")
    assert np.allclose(kept, mean, rtol=1e-6)


def test_a_worker_is_compensated_from_what_it_was_given_last():
    _, loop = compensated(bound=float("inf"))
    at = loop.values()["p"].copy()
    loop.halves[0].after_backward()      # nobody came between: no compensation
    assert np.allclose(at - loop.values()["p"], OWN)


def test_a_worker_that_never_pulled_is_not_compensated():
    loop = Loop("delay_compensated", {}, 1, 1, VARIABLE, rate=1.0)
    loop.store({"p": START})
    loop.grads(0)["p"][...] = OWN
    loop.clients[0].push()
    loop.pump()
    assert (START - loop.values()["p"] == OWN).all()


def test_what_was_kept_for_a_worker_goes_with_it():
    _, loop = compensated()
    loop.clients[0].leave()
    loop.pump()
    assert set(loop.servers[0].mode.given) == {1}


def test_the_guard_keeps_a_run_finite_that_blows_up_without():
    def run(bound):
        loop = Loop("delay_compensated", {"lambda_": 50.0, "bound": bound}, 1, 2, VARIABLE, rate=0.2)
        loop.store({"p": START * 10})

        def body(worker):
            client = loop.clients[worker]
            client.collect(client.pull())
            for _ in range(30):
                loop.pause(worker)
                loop.grads(worker)["p"][...] = loop.params(worker)["p"]
                loop.halves[worker].after_backward()
            client.leave()
        with np.errstate(all="ignore"):
            loop.run(body)
        return np.abs(loop.values()["p"]).max()
    assert run(1.0) < 1.0
    assert not run(float("inf")) < 1.0


@pytest.mark.parametrize("told", ({"lambda_": -1}, {"bound": -0.5}, {"decay": 1.5}, {"adaptive": "maybe"},
                                  {"bound": float("nan")}))
def test_a_setting_that_means_nothing_is_refused_by_name(told):
    with pytest.raises(UsageError, match=f"{next(iter(told))}: expected"):
        Loop("delay_compensated", told)
