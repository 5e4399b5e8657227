"""Softmax and the cross entropy of logits: both versions agree, large and odd numbers, labels out of range."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference import softmax as kernels
from fleet_mpi.kernels.threads import set_threads

SHAPES = [(1, 1), (3, 5), (4, 8), (2, 63), (5, 64), (3, 200), (2, 4, 3), (70, 1000)]


def numbers(rng, *shape, dtype=np.float32):
    return rng.normal(0, 3, shape).astype(dtype)


def without_classes(shape):
    return shape[:1] + shape[2:]


def plain(shape, dtype):
    return lambda rng: (numbers(rng, *shape, dtype=dtype), np.empty(shape, dtype))


def backward(shape, dtype):
    return lambda rng: (targets_of(rng, shape, dtype), numbers(rng, *shape, dtype=dtype), np.empty(shape, dtype))


def log_backward(shape, dtype):
    return lambda rng: (np.log(targets_of(rng, shape, dtype)), numbers(rng, *shape, dtype=dtype),
                        np.empty(shape, dtype))


def labels_of(rng, shape):
    labels = rng.integers(0, shape[1], without_classes(shape))
    labels.reshape(-1)[::3] = -100
    return labels


def labelled(shape, dtype):
    return lambda rng: (numbers(rng, *shape, dtype=dtype), labels_of(rng, shape), np.empty(shape, dtype),
                        np.empty(without_classes(shape), dtype), -100)


def labelled_backward(shape, dtype):
    return lambda rng: (numbers(rng, *shape, dtype=dtype), labels_of(rng, shape),
                        numbers(rng, *without_classes(shape), dtype=dtype), np.empty(shape, dtype), -100)


def targets_of(rng, shape, dtype):
    raw = rng.uniform(0.1, 1, shape)
    return (raw / raw.sum(axis=1, keepdims=True)).astype(dtype)


def soft(shape, dtype):
    return lambda rng: (numbers(rng, *shape, dtype=dtype), targets_of(rng, shape, dtype), np.empty(shape, dtype),
                        np.empty(without_classes(shape), dtype))


def soft_backward(shape, dtype):
    return lambda rng: (numbers(rng, *shape, dtype=dtype), targets_of(rng, shape, dtype),
                        numbers(rng, *without_classes(shape), dtype=dtype), np.empty(shape, dtype))


MAKERS = {"softmax": plain, "softmax_backward": backward, "log_softmax": plain, "log_softmax_backward": log_backward,
          "softmax_cross_entropy": labelled, "softmax_cross_entropy_backward": labelled_backward,
          "soft_cross_entropy": soft, "soft_cross_entropy_backward": soft_backward}
KERNEL_CASES = {name: [make(shape, dtype) for shape in SHAPES for dtype in (np.float32, np.float64)]
                for name, make in MAKERS.items()}
KERNEL_TOLERANCES = dict.fromkeys(MAKERS, 2e-5)


@pytest.mark.parametrize("run", (lambda kernel: kernel, lambda kernel: kernel.reference), ids=("kernel", "reference"))
@pytest.mark.parametrize("lowest, expected", ((-1e4, 64.0), (-65.0, 64.0), (-63.0, 63.0)))
def test_a_class_more_than_64_below_the_largest_counts_as_64_below_in_the_loss_too(lowest, expected, run):
    logits = np.array([[1e4, 0.0, 1e4 + lowest]], np.float32)
    probabilities, loss = np.empty_like(logits), np.empty(1, np.float32)
    assert run(kernels.softmax_cross_entropy)(logits, np.array([2]), probabilities, loss, -100) == -1
    assert loss[0] == expected and probabilities[0, 0] == 1 and (probabilities > 0).all()
    targets = np.array([[0.5, 0.0, 0.5]], np.float32)
    run(kernels.soft_cross_entropy)(logits, targets, probabilities, loss)
    assert loss[0] == expected / 2


def test_the_loss_of_a_model_that_diverged_is_that_of_the_clipped_probabilities():
    rng = np.random.default_rng(0)
    logits, labels = (rng.normal(size=(50, 70)) * 200).astype(np.float32), rng.integers(0, 70, 50)
    probabilities, loss, soft = np.empty_like(logits), np.empty(50, np.float32), np.empty(50, np.float32)
    kernels.softmax_cross_entropy(logits, labels, probabilities, loss, -100)
    np.testing.assert_allclose(loss, -np.log(probabilities[np.arange(50), labels]), rtol=1e-6)
    kernels.soft_cross_entropy(logits, np.eye(70, dtype=np.float32)[labels], probabilities, soft)
    np.testing.assert_allclose(soft, loss, rtol=1e-6)
    assert loss.max() > 60


@pytest.mark.parametrize("wrong", [-1, 3, 2 ** 40])
def test_a_label_that_names_no_class_is_found_before_it_is_used(wrong):
    logits = np.zeros((4, 3), np.float32)
    out, loss = np.empty_like(logits), np.full(4, -7, np.float32)
    assert kernels.softmax_cross_entropy(logits, np.array([0, -100, wrong, 1]), out, loss, -100) == 2
    assert (loss == -7).all()


def test_results_may_lie_in_the_memory_of_what_they_are_made_from():
    rng = np.random.default_rng(1)
    for name in MAKERS:
        arguments = list(MAKERS[name]((6, 70), np.float32)(rng))
        expected = [np.copy(one) for one in arguments]
        getattr(kernels, name)(*expected)
        where = 2 if name.endswith("entropy") else 3 if name.endswith("entropy_backward") else len(arguments) - 1
        arguments[where] = arguments[0]
        getattr(kernels, name)(*arguments)
        np.testing.assert_array_equal(arguments[where], expected[where], err_msg=name)


def test_one_and_two_threads_give_the_same_bits():
    x = numbers(np.random.default_rng(2), 300, 700)
    made = []
    try:
        for count in (1, 2):
            set_threads(count)
            made.append(np.empty_like(x))
            kernels.softmax(x, made[-1])
    finally:
        set_threads(None)
    assert made[0].tobytes() == made[1].tobytes()


def test_a_nan_stays_in_its_row():
    x = np.array([[1.0, np.nan, 2.0], [1.0, 2.0, 3.0]], np.float32)
    out = np.empty_like(x)
    kernels.softmax(x, out)
    assert np.isnan(out[0]).all() and out[1].sum() == pytest.approx(1)
