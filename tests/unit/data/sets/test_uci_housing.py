"""Housing: the file's normalisation and cut, and a stand-in that fit_a_line can fit."""

import random

import numpy as np
import pytest

from fleet_mpi.data.readers import batch, shuffle
from fleet_mpi.data.sets import uci_housing
from fleet_mpi.errors import UsageError


def test_a_real_file_is_normalised_and_cut(data_home, capfd):
    rows = np.arange(140, dtype=float).reshape(10, 14) ** 1.5
    (data_home / "uci_housing").mkdir()
    np.savetxt(data_home / "uci_housing" / "housing.data", rows, fmt="%.8f")
    train, test = list(uci_housing.train()()), list(uci_housing.test()())
    assert (len(train), len(test)) == (8, 2)
    expected = (rows[:, :13] - rows[:, :13].mean(0)) / (rows[:, :13].max(0) - rows[:, :13].min(0))
    np.testing.assert_allclose(np.array([x for x, _ in train + test]), expected, atol=1e-6)
    np.testing.assert_allclose(np.array([y for _, y in train + test]), rows[:, 13:], atol=1e-6)
    assert "synthetic" not in capfd.readouterr().err


def test_a_file_of_the_wrong_width_is_refused(data_home):
    (data_home / "uci_housing").mkdir()
    (data_home / "uci_housing" / "housing.data").write_text("1 2 3")
    with pytest.raises(UsageError, match="rows of 14"):
        uci_housing.train()


def test_the_stand_in_has_the_sets_shape_and_is_said_once(data_home, capfd):
    train, test = list(uci_housing.train()()), list(uci_housing.test()())
    assert (len(train), len(test)) == (404, 102)
    features, prices = np.array([x for x, _ in train + test]), np.array([y for _, y in train + test])
    assert features.shape == (506, 13) and features.dtype == np.float64
    assert np.allclose(features.mean(0), 0) and np.allclose(np.ptp(features, axis=0), 1)
    assert abs(prices.mean() - 22.5) < 0.1 and prices.std() <= 5
    assert uci_housing.predict_reader()[0].shape == (13,)
    captured = capfd.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1


@pytest.mark.parametrize("seed", range(4))
def test_fit_a_line_reaches_its_goal_on_the_stand_in(data_home, seed):
    random.seed(seed)
    weight = np.random.default_rng(seed).uniform(-1, 1, 13) * np.sqrt(6 / 14)
    bias, best = 0.0, np.inf
    reader = batch(shuffle(uci_housing.train(), 500), 20)
    for _ in range(100):
        for samples in reader():
            x, y = np.array([x for x, _ in samples]), np.array([y[0] for _, y in samples])
            error = x @ weight + bias - y
            best = min(best, (error ** 2).mean())
            weight -= 0.002 * error @ x / len(error)
            bias -= 0.002 * error.mean()
    assert best < 10
