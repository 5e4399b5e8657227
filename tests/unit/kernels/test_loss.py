"""Loss kernels: both versions agree; zero probabilities and labels to be ignored."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference import loss as kernels

SIZES = [1, 7, 1000]


def probability(rng, *shape, dtype):
    return rng.uniform(0.001, 0.999, shape).astype(dtype)


def labels_of(rng, rows, classes):
    labels = rng.integers(0, classes, rows)
    labels[::4] = -100
    return labels


def labelled(size, dtype):
    return lambda rng: (probability(rng, size, 5, dtype=dtype), labels_of(rng, size, 5), np.empty(size, dtype),
                        np.empty(size, dtype), -100)


def labelled_backward(size, dtype):
    return lambda rng: (probability(rng, size, dtype=dtype), labels_of(rng, size, 5),
                        probability(rng, size, dtype=dtype), np.empty((size, 5), dtype), -100)


def of_probability(size, dtype):
    return lambda rng: (probability(rng, size, dtype=dtype), rng.integers(0, 2, size).astype(dtype),
                        np.empty(size, dtype), 1e-4)


def of_probability_backward(size, dtype):
    return lambda rng: (probability(rng, size, dtype=dtype), probability(rng, size, dtype=dtype),
                        probability(rng, size, dtype=dtype), np.empty(size, dtype), 1e-4)


def binary_labels(rng, size, dtype):
    labels = rng.uniform(0, 1, size).astype(dtype)
    labels[::3] = -100
    return labels


def of_logit(size, dtype):
    return lambda rng: (rng.normal(0, 5, size).astype(dtype), binary_labels(rng, size, dtype),
                        np.empty(size, dtype), -100)


def of_logit_backward(size, dtype):
    return lambda rng: (rng.normal(0, 5, size).astype(dtype), binary_labels(rng, size, dtype),
                        rng.normal(size=size).astype(dtype), np.empty(size, dtype), -100)


MAKERS = {"cross_entropy": labelled, "cross_entropy_backward": labelled_backward, "log_loss": of_probability,
          "log_loss_backward": of_probability_backward, "sigmoid_cross_entropy": of_logit,
          "sigmoid_cross_entropy_backward": of_logit_backward}
KERNEL_CASES = {name: [make(size, dtype) for size in SIZES for dtype in (np.float32, np.float64)]
                for name, make in MAKERS.items()}
KERNEL_TOLERANCES = dict.fromkeys(MAKERS, 1e-5)


@pytest.mark.parametrize("run", [kernels.cross_entropy, kernels.cross_entropy.reference])
def test_a_probability_of_zero_costs_much_but_not_infinitely_much(run):
    match, loss = np.empty(2), np.empty(2)
    run(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 0]), match, loss, -100)
    assert loss.tolist() == [1e20, 0.0]


def test_a_label_that_names_no_class_is_found():
    found = kernels.cross_entropy(np.ones((3, 2)), np.array([1, 2, 5]), np.empty(3), np.empty(3), -100)
    assert found == 1


@pytest.mark.parametrize("run", [kernels.sigmoid_cross_entropy, kernels.sigmoid_cross_entropy.reference])
def test_large_logits_do_not_overflow(run):
    out = np.empty(4, np.float32)
    run(np.array([1e4, -1e4, 1e4, -1e4], np.float32), np.array([1, 0, 0, 1], np.float32), out, -100)
    assert out.tolist() == [0, 0, 1e4, 1e4]
