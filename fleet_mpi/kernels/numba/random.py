"""The random kernels for host arrays: words for a piece of the draw, then one loop that shapes them.

Same names, arguments and bits as ``random.py``; the order of operations must stay that of the
references. The pieces bound the workspace, they have no influence on the values.
"""

import math

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.reference.random import (
    COSINE_SERIES,
    LOG_SERIES,
    MULTIPLIERS,
    QUANTILE_ABOVE,
    QUANTILE_BELOW,
    RADIANS_PER_WORD,
    ROOT_HALF_BITS,
    ROUNDS,
    SINE_SERIES,
    TWO_SIGMA,
    UNIT,
    WEYL,
    WORD,
    largest_below,
    span_of,
    threshold_of,
)

PIECE = 16384  # words: with the float64 copies that normal needs, within a 512 KiB second-level cache
HALF, LOW_HALF = np.uint64(32), np.uint64(WORD)
FACTOR_EVEN, FACTOR_ODD = np.uint64(MULTIPLIERS[0]), np.uint64(MULTIPLIERS[1])
WEYL_EVEN, WEYL_ODD = np.uint64(WEYL[0]), np.uint64(WEYL[1])
LN2 = math.log(2.0)
HALF_QUARTER = 1 << 29
QUARTER = 2.0 ** 30


def random_bits(out, key, stream, offset):
    """Words as they come."""
    _draw(out, key, stream, offset, _copy)


def uniform(out, key, stream, offset, low, high):
    """One product and one sum per word."""
    top = largest_below(high, low, out.dtype)
    _draw(out, key, stream, offset, _spread, float(low), float(high) - float(low), top)


def normal(out, key, stream, offset, mean, std):
    """Box and Muller over whole pairs, cut to the wanted elements."""
    _draw(out, key, stream, offset, _bell, float(mean), float(std))


def truncated_normal(out, key, stream, offset, mean, std):
    """One rational function per word."""
    _draw(out, key, stream, offset, _cut_bell, float(mean), float(std))


def bernoulli_mask(out, key, stream, offset, probability):
    """One comparison per word; any dtype that holds 0 and 1."""
    _draw(out, key, stream, offset, _mark, threshold_of(probability))


def integers(out, key, stream, offset, low, high):
    """The upper half of word times range."""
    _draw(out, key, stream, offset, _count, int(low), np.uint64(span_of(low, high)))


def _draw(out, key, stream, offset, shape_words, *arguments):
    """Fill ``out`` piece by piece: ``shape_words(words, skip, part, *arguments)`` writes one part."""
    target = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    line = target.reshape(-1)
    words = np.empty(min(line.size + 6 & ~3, PIECE), np.uint32)
    key, stream = np.uint64(key), np.uint64(stream)
    block, skip = offset >> 2, offset & 3
    done = 0
    while done < line.size:
        part = line[done:done + len(words) - skip]
        used = words[:skip + part.size + 3 & ~3]
        _fill(used, np.uint64(block), key, stream)
        shape_words(used, skip, part, *arguments)
        done += part.size
        block += len(words) >> 2
        skip = 0
    if target is not out:
        out[...] = target


@compiled
def _fill(words, first, key, stream):
    """Philox blocks ``first``, ``first + 1``, ...: four words each."""
    blocks = words.size // 4
    lanes = np.empty((4, blocks), np.uint64)
    for b in range(blocks):
        block = first + np.uint64(b)
        lanes[0, b] = block & LOW_HALF
        lanes[1, b] = block >> HALF
        lanes[2, b] = stream & LOW_HALF
        lanes[3, b] = stream >> HALF
    _shuffle(lanes, key, words)


@compiled
def _shuffle(lanes, key, words):
    """Ten rounds over the counters of blocks ([4, blocks], changed), and their words in order.

    Round by round over all blocks: a loop over whole blocks does not vectorise (4.2 against 1.6 ns a word).
    """
    c0, c1, c2, c3 = lanes[0], lanes[1], lanes[2], lanes[3]
    k0, k1 = key & LOW_HALF, key >> HALF
    for _ in range(ROUNDS):
        for b in range(c0.size):
            even, odd = c0[b] * FACTOR_EVEN, c2[b] * FACTOR_ODD
            c0[b] = (odd >> HALF) ^ c1[b] ^ k0
            c2[b] = (even >> HALF) ^ c3[b] ^ k1
            c1[b] = odd & LOW_HALF
            c3[b] = even & LOW_HALF
        k0, k1 = (k0 + WEYL_EVEN) & LOW_HALF, (k1 + WEYL_ODD) & LOW_HALF
    for b in range(c0.size):
        words[4 * b] = c0[b]
        words[4 * b + 1] = c1[b]
        words[4 * b + 2] = c2[b]
        words[4 * b + 3] = c3[b]


@compiled
def _copy(words, skip, part):
    for i in range(part.size):
        part[i] = words[skip + i]


@compiled
def _spread(words, skip, part, low, span, top):
    words = words[skip:]
    for i in range(part.size):
        part[i] = min(low + span * ((np.float64(words[i]) + 0.5) * UNIT), top)


@compiled
def _mark(words, skip, part, threshold):
    words = words[skip:]
    for i in range(part.size):
        part[i] = np.int64(words[i]) < threshold


@compiled
def _count(words, skip, part, low, span):
    words = words[skip:]
    for i in range(part.size):
        part[i] = low + np.int64(np.uint64(words[i]) * span >> np.uint64(32))


@compiled
def _cut_bell(words, skip, part, mean, std):
    words = words[skip:]
    for i in range(part.size):
        x = TWO_SIGMA * (2.0 * ((np.float64(words[i]) + 0.5) * UNIT) - 1.0)
        square = x * x
        z = x * _horner(QUANTILE_ABOVE, square) / _horner(QUANTILE_BELOW, square)
        part[i] = mean + std * min(max(z, -2.0), 2.0)


@compiled
def _bell(words, skip, part, mean, std):
    """Radii and angles of all pairs, then the wanted elements; short loops, so that each vectorises."""
    pairs = words.size // 2
    radius = np.empty(pairs)
    drawn = np.empty((pairs, 2))
    for j in range(pairs):
        radius[j] = (np.float64(words[2 * j]) + 0.5) * UNIT
    bits = radius.view(np.int64)
    exponent = np.empty(pairs)
    for j in range(pairs):
        power = bits[j] - ROOT_HALF_BITS >> 52
        exponent[j] = np.float64(power)
        bits[j] -= power << 52
    for j in range(pairs):
        s = (radius[j] - 1.0) / (radius[j] + 1.0)
        log = exponent[j] * LN2 + 2.0 * s * _horner(LOG_SERIES, s * s)
        radius[j] = np.sqrt(-2.0 * log)
    for j in range(pairs):
        cosine, sine = _turn(words[2 * j + 1])
        drawn[j, 0] = radius[j] * cosine
        drawn[j, 1] = radius[j] * sine
    line = drawn.reshape(-1)[skip:]
    for i in range(part.size):
        part[i] = mean + std * line[i]


@compiled
def _turn(word):
    quarter = np.int64(word) + HALF_QUARTER >> 30
    angle = (np.float64(word) + 0.5 - np.float64(quarter) * QUARTER) * RADIANS_PER_WORD
    square = angle * angle
    sine, cosine = angle * _horner(SINE_SERIES, square), _horner(COSINE_SERIES, square)
    across, along = (sine, cosine) if quarter & 1 else (cosine, sine)
    return (1.0 - np.float64(quarter + 1 & 2)) * across, (1.0 - np.float64(quarter & 2)) * along


@compiled
def _horner(coefficients, x):
    total = coefficients[-1]
    for k in range(len(coefficients) - 2, -1, -1):
        total = total * x + coefficients[k]
    return total
