"""The counter-based generator: published vectors, independence of the cut, moments, ends of ranges."""

from statistics import NormalDist

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.kernels.numba import random as numba_random
from fleet_mpi.kernels.reference import random

KEY = random.key_of(7, "fc_0.w_0")
STREAM = random.stream_of(3, 41)

# Random123's kat_vectors for philox4x32-10: counter, key, result.
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]

DRAWS = {
    "random_bits": (np.uint32, ()),
    "uniform": (np.float32, (-1.0, 3.0)),
    "normal": (np.float32, (0.5, 2.0)),
    "truncated_normal": (np.float64, (0.0, 1.0)),
    "bernoulli_mask": (np.float32, (0.3,)),
    "integers": (np.int64, (-5, 17)),
}


def drawn(name, size, offset=0, key=KEY, stream=STREAM):
    dtype, arguments = DRAWS[name]
    out = np.empty(size, dtype)
    getattr(random, name)(out, key, stream, offset, *arguments)
    return out


def case(name, size, offset):
    dtype, arguments = DRAWS[name]
    return lambda rng: (np.empty(size, dtype), KEY, STREAM, offset, *arguments)


# For test_every_kernel: more than one piece, and starts at every lane of a block.
SIZES_AND_OFFSETS = ((0, 0), ((), 3), ((13, 1), 1), ((5, 8111), 2 ** 34 + 5))
KERNEL_CASES = {name: [case(name, size, offset) for size, offset in SIZES_AND_OFFSETS] for name in DRAWS}


def as_64_bits(low, high):
    return low | high << 32


@pytest.mark.parametrize("counter, key, answer", KNOWN_ANSWERS)
def test_both_versions_give_the_published_known_answers(counter, key, answer):
    block = random.philox_block(np, [np.array([c], np.uint64) for c in counter], key)
    assert tuple(block[0]) == answer
    words = np.empty(4, np.uint32)
    numba_random._fill(words, *(np.uint64(as_64_bits(*pair)) for pair in (counter[:2], key, counter[2:])))
    assert tuple(words) == answer


@pytest.mark.parametrize("name", DRAWS)
def test_a_value_does_not_depend_on_the_cut(name):
    whole = drawn(name, 50_000)
    for start, end in ((0, 1), (1, 2), (3, 40_001), (16_383, 16_390), (40_001, 50_000)):
        np.testing.assert_array_equal(drawn(name, end - start, start), whole[start:end])


@pytest.mark.parametrize("name", ("random_bits", "uniform", "normal", "truncated_normal"))
def test_keys_and_streams_give_other_values(name):
    base = drawn(name, 64)
    for other in (drawn(name, 64, key=KEY + 1), drawn(name, 64, stream=STREAM + 1), drawn(name, 64, 64)):
        assert (base != other).mean() > 0.9


@pytest.mark.parametrize("name, dtype", [(name, dtype) for name in ("uniform", "normal", "truncated_normal")
                                         for dtype in (np.float32, np.float64)])
def test_float32_values_are_the_rounded_float64_ones(name, dtype):
    out = np.empty(999, dtype)
    getattr(random, name)(out, KEY, STREAM, 0, 0.0, 2.0)
    wide = np.empty(999, np.float64)
    getattr(random, name).reference(wide, KEY, STREAM, 0, 0.0, 2.0)
    np.testing.assert_array_equal(out, wide.astype(dtype))


def test_an_array_with_gaps_is_filled_in_order():
    grid = np.zeros((6, 10), np.float32)
    random.uniform(grid[:, ::2], KEY, STREAM, 0, -1.0, 3.0)
    np.testing.assert_array_equal(grid[:, ::2].ravel(), drawn("uniform", 30))
    assert not grid[:, 1::2].any()


def test_uniform_stays_below_its_upper_end_in_float32():
    words = np.full(4, 0xFFFFFFFF, np.uint32)
    part = np.empty(4, np.float32)
    numba_random._spread(words, 0, part, 0.0, 1.0, random.largest_below(1.0, 0.0, np.float32))
    assert (part < 1.0).all()


@pytest.mark.parametrize("name, mean, deviation", [
    ("uniform", 1.0, 4 / 12 ** 0.5), ("normal", 0.5, 2.0), ("truncated_normal", 0.0, 0.8796),
    ("bernoulli_mask", 0.3, 0.4583), ("integers", 5.5, ((22 ** 2 - 1) / 12) ** 0.5)])
def test_moments_are_those_of_the_distribution(name, mean, deviation):
    values = drawn(name, 400_000).astype(np.float64)
    assert abs(values.mean() - mean) < 5 * deviation / 400_000 ** 0.5
    assert abs(values.std() / deviation - 1) < 0.006


def test_normal_values_fill_their_quantiles():
    values = (np.sort(drawn("normal", 100_000).astype(np.float64)) - 0.5) / 2.0
    expected = np.array([NormalDist().cdf(v) for v in values[::500]])
    assert np.abs(expected - np.arange(0, 100_000, 500) / 100_000).max() < 0.006


def test_the_two_values_of_a_pair_are_not_correlated():
    values = (drawn("normal", 200_000).astype(np.float64) - 0.5) / 2.0
    assert abs((values[::2] * values[1::2]).mean()) < 5 / 100_000 ** 0.5


def test_truncated_normal_is_the_inverse_of_the_distribution():
    words = np.empty(2000, np.uint64)
    random.random_bits(words, KEY, STREAM, 0)
    lowest, highest = NormalDist().cdf(-2), NormalDist().cdf(2)
    share = lowest + (words.astype(np.float64) + 0.5) / 2 ** 32 * (highest - lowest)
    expected = [NormalDist().inv_cdf(p) for p in share]
    np.testing.assert_allclose(drawn("truncated_normal", 2000), expected, rtol=1e-8, atol=1e-12)


def test_truncated_normal_stays_within_two_deviations():
    part = np.empty(2, np.float64)
    numba_random._cut_bell(np.array([0, 0xFFFFFFFF], np.uint32), 0, part, 10.0, 1.0)
    np.testing.assert_allclose(part, [8.0, 12.0], atol=1e-7)
    assert part[0] >= 8.0 and part[1] <= 12.0


@pytest.mark.parametrize("probability, expected", [(0.0, 0.0), (1.0, 1.0)])
def test_a_mask_at_probability_zero_or_one_is_constant(probability, expected):
    mask = np.full(5000, 0.5, np.float32)
    random.bernoulli_mask(mask, KEY, STREAM, 0, probability)
    assert (mask == expected).all()


def test_integers_reach_both_ends_and_the_full_range():
    small = drawn("integers", 5000)
    assert small.min() == -5 and small.max() == 16
    wide = np.empty(5000, np.int64)
    random.integers(wide, KEY, STREAM, 0, -2 ** 31, 2 ** 31)
    assert wide.min() < -2 ** 31 * 0.99 and 2 ** 31 * 0.99 < wide.max() < 2 ** 31


@pytest.mark.parametrize("name, arguments", [
    ("integers", (3, 3)), ("integers", (0, 2 ** 32 + 1)), ("bernoulli_mask", (1.5,))])
def test_impossible_arguments_are_usage_errors(name, arguments):
    with pytest.raises(UsageError):
        getattr(random, name)(np.empty(3, np.int64), KEY, STREAM, 0, *arguments)


def test_keys_are_the_same_on_every_machine_and_tell_their_parts_apart():
    assert random.key_of(0) == 0xFE035D167C69D2E7
    assert random.key_of(7, "fc_0.w_0", 2) == 0xAA50AA7B1488035C
    alike = ((1, "a", "bc"), (1, "ab", "c"), (1, "abc"), (1, "1"), (1, 1), (11,), (-11,))
    keys = {random.key_of(*parts) for parts in alike}
    assert len(keys) == 7
    assert all(0 <= key < 2 ** 64 for key in keys)


def test_streams_tell_worker_and_step_apart_and_refuse_what_does_not_fit():
    assert random.stream_of(1, 0) != random.stream_of(0, 1)
    for worker, step in ((-1, 0), (0, -1), (1 << 24, 0), (0, 1 << 40)):
        with pytest.raises(UsageError):
            random.stream_of(worker, step)
