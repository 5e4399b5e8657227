"""Fully connected layers: what the two APIs call differently, and sizes that are no sizes."""

import numpy as np
import pytest

from fleet_mpi import fluid, paddle
from fleet_mpi.errors import UsageError


@pytest.fixture
def x():
    """Rows of four."""
    return fluid.layers.data(name="x", shape=[4])


@pytest.mark.parametrize("layer, word, here", (
    (fluid.layers.fc, "activation", "act"), (fluid.layers.fc, "weight_attr", "param_attr"),
    (paddle.static.nn.fc, "act", "activation"), (paddle.static.nn.fc, "param_attr", "weight_attr")))
def test_the_other_apis_word_is_refused_with_the_right_one(x, layer, word, here):
    with pytest.raises(UsageError, match=f"fc has no argument '{word}'; it is called '{here}' here"):
        layer(x, 2, **{word: None})


def test_a_misspelt_word_is_refused_with_the_nearest(x):
    with pytest.raises(UsageError, match="fc has no argument 'bias_atr'; did you mean 'bias_attr'"):
        fluid.layers.fc(x, 2, bias_atr=False)


@pytest.mark.parametrize("size", (2.5, 2.0, 0, -1, "2", None, True))
def test_a_size_is_a_whole_number(x, size):
    with pytest.raises(UsageError, match="fc: size: expected a whole number from 1 up, got"):
        fluid.layers.fc(x, size)
    with pytest.raises(UsageError, match="fc: size: expected a whole number from 1 up, got"):
        paddle.static.nn.fc(x, size)


def test_numpys_whole_numbers_are_sizes(x):
    assert fluid.layers.fc(x, np.int64(3)).shape == (-1, 3)
