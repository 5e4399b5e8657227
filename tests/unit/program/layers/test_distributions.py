"""Distributions against numpy: samples by their moments, densities and divergences by their formulas."""

import numpy as np
import pytest

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.layers import distributions
from fleet_mpi.program.layers.data import data, static_data
from tests.unit.program.building import from_scratch

ROOT = np.sqrt(2 * np.pi)


def run(*fetches, **feed):
    return Executor().run(feed=feed, fetch_list=list(fetches))


def test_even_values():
    value = static_data("value", [3])
    plain, many = distributions.Uniform(1.0, 3.0), distributions.Uniform([0.0, 5.0], np.array([1.0, 10.0]))
    drawn, each, log, share, entropy = run(
        plain.sample([4000]), many.sample([2000]), plain.log_prob(value), plain.probs(value), many.entropy(),
        value=np.array([0.5, 2.0, 4.0], "float32"))
    assert drawn.shape == (4000,) and drawn.min() >= 1 and drawn.max() < 3 and abs(drawn.mean() - 2) < 0.05
    assert each.shape == (2000, 2) and np.allclose(each.mean(0), [0.5, 7.5], atol=0.2)
    assert log.tolist() == [-np.inf, pytest.approx(np.log(0.5)), -np.inf] and share.tolist() == [0, 0.5, 0]
    np.testing.assert_allclose(entropy, np.log([1, 5]), atol=1e-6)


def test_normal_values():
    value = static_data("value", [2])
    one, other = distributions.Normal(1.0, 2.0), distributions.Normal([0.0, 1.0], [1.0, 3.0])
    drawn, log, entropy, apart = run(one.sample([4000]), other.log_prob(value), other.entropy(),
                                     one.kl_divergence(other),
                                     value=np.array([0.5, 2.0], "float32"))
    assert drawn.shape == (4000,) and abs(drawn.mean() - 1) < 0.15 and abs(drawn.std() - 2) < 0.1
    density = np.exp(-0.5 * np.array([0.5, 1 / 3]) ** 2) / (np.array([1, 3]) * ROOT)
    np.testing.assert_allclose(log, np.log(density), rtol=1e-5)
    np.testing.assert_allclose(entropy, 0.5 + np.log(ROOT * np.array([1, 3])), rtol=1e-5)
    np.testing.assert_allclose(apart, [np.log(1 / 2) + (4 + 1) / 2 - 0.5, np.log(3 / 2) + 4 / 18 - 0.5], rtol=1e-5)


def test_a_batch_of_unknown_size_is_sampled_as_a_whole():
    mean = data("mean", [2])
    drawn, more = run(distributions.Normal(mean, 0.5).sample(), distributions.Uniform(mean, mean + 1.0).sample([3]),
                      mean=np.arange(8, dtype="float32").reshape(4, 2))
    assert drawn.shape == (4, 2) and more.shape == (3, 4, 2)
    assert (more >= np.arange(8).reshape(4, 2)).all() and (more <= np.arange(8).reshape(4, 2) + 1).all()


def test_classes():
    logits, value = static_data("logits", [2, 3]), static_data("value", [2], "int64")
    fed = np.array([[0, 1, 2], [3, 0, -30]], "float32")
    one, other = distributions.Categorical(logits), distributions.Categorical(np.zeros((2, 3)))
    drawn, log, entropy, apart, share = run(one.sample([4000]), one.log_prob(value), one.entropy(),
                                            one.kl_divergence(other), distributions.Categorical(fed[0]).probs(value),
                                            logits=fed, value=np.array([2, 0]))
    p = np.exp(fed) / np.exp(fed).sum(1, keepdims=True)
    assert drawn.shape == (4000, 2)
    np.testing.assert_allclose([[np.mean(drawn[:, i] == c) for c in range(3)] for i in range(2)], p, atol=0.05)
    np.testing.assert_allclose(log, np.log([p[0, 2], p[1, 0]]), rtol=1e-5)
    np.testing.assert_allclose(entropy, -(p * np.log(p)).sum(1, keepdims=True), rtol=1e-4)
    np.testing.assert_allclose(apart, (p * np.log(p * 3)).sum(1, keepdims=True), rtol=1e-4)
    np.testing.assert_allclose(share, [p[0, 2], p[0, 0]], rtol=1e-5)


def test_classes_of_2x_by_the_example_of_the_documentation():
    value = static_data("value", [3], "int64")
    x, y = ([0.5535528, 0.20714243, 0.01162981, 0.51577556, 0.36369765, 0.2609165],
            [0.77663314, 0.90824795, 0.15685187, 0.04279523, 0.34468332, 0.7955718])
    one, other = (distributions.WeighedCategorical(np.array(weights, "float32")) for weights in (x, y))
    share, log, entropy, apart = run(one.probs(value), one.log_prob(value), one.entropy(), one.kl_divergence(other),
                                     value=np.array([2, 1, 3]))
    np.testing.assert_allclose(share, [0.00608027, 0.108298, 0.269656], rtol=1e-5)
    np.testing.assert_allclose(log, [-5.10271, -2.22287, -1.31061], rtol=1e-5)
    np.testing.assert_allclose([entropy[0], apart[0]], [1.77528, 0.071952], rtol=1e-4)


def test_several_normal_values_at_once():
    # The example of the original's documentation.
    a = distributions.MultivariateNormalDiag(np.array([0.3, 0.5]), np.array([[0.4, 0], [0, 0.5]]))
    b = distributions.MultivariateNormalDiag(np.array([0.2, 0.4]), np.array([[0.3, 0], [0, 0.4]]))
    found = run(a.entropy(), b.entropy(), a.kl_divergence(b))
    np.testing.assert_allclose([one[0] for one in found], [2.033158, 1.7777451, 0.06542051], rtol=1e-5)


def test_what_is_not_there_says_so():
    one = distributions.Uniform(0.0, 1.0)
    with pytest.raises(NotBuilt, match="Uniform has no kl_divergence"):
        one.kl_divergence(one)
    with pytest.raises(UsageError, match="expected another Normal, got Uniform"):
        distributions.Normal(0.0, 1.0).kl_divergence(one)


def test_a_seed_draws_the_same_classes_in_another_program():
    drawn = []
    for seed in (3, 3, 4):
        with from_scratch():
            drawn.append(run(distributions.Categorical(np.zeros(50, "float32")).sample([20], seed=seed))[0].tolist())
    assert drawn[0] == drawn[1] != drawn[2]
