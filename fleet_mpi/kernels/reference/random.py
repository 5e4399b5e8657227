"""Random draws by counter: value i depends on (key, stream, i) alone, never on how an array is cut.

The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"). Element i
takes one 32-bit word: lane i % 4 of block i // 4, whatever its dtype. The distributions use only
additions, products, divisions and square roots in float64, so every machine draws the same bits.
Each kernel fills ``out`` with the elements ``offset``, ``offset + 1``, ... of the draw. Knows no seeds of
programs: ``key_of`` and ``stream_of`` make the two integers from whatever names a draw.
"""

import math

import numpy as np

from fleet_mpi.arrays import module_of
from fleet_mpi.errors import UsageError
from fleet_mpi.kernels import kernel

WORD = 0xFFFFFFFF
TWO_TO_64 = 1 << 64
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
UNIT = 2.0 ** -32

# log of a mantissa in [sqrt(1/2), sqrt(2)) is 2 artanh(s): enough terms for |s| < 0.172 in float64.
LOG_SERIES = tuple(1.0 / (2 * k + 1) for k in range(11))
# Taylor series for angles up to an eighth of a turn.
SINE_SERIES = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(9))
COSINE_SERIES = tuple((-1) ** k / math.factorial(2 * k) for k in range(9))
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # sqrt(1/2) as float64 bits
RADIANS_PER_WORD = 2.0 * math.pi * UNIT

# Inverse of the normal distribution between -2 and 2: z = x P(x^2) / Q(x^2), x = 2 p - 1. Fitted by
# weighted least squares on 2000 Chebyshev nodes; the relative error is below 2e-9, under float32's.
TWO_SIGMA = math.erf(math.sqrt(2.0))
QUANTILE_ABOVE = (1.2533141388695246, -3.8436722206430876, 4.349411762126099,
                  -2.176756227312265, 0.43784833861957995, -0.019811234388734056)
QUANTILE_BELOW = (1.0, -3.328605986208519, 4.1978214891924885,
                  -2.45434195356668, 0.6394200042416325, -0.05418966926023716)


def key_of(seed, *parts):
    """A 64-bit key from a seed and names or numbers, the same on every machine and Python."""
    mixed = 0xCBF29CE484222325
    for part in (seed, *parts):
        text = repr(int(part)) if not isinstance(part, str) else "'" + part
        for byte in text.encode() + b"\0":
            mixed = (mixed ^ byte) * 0x100000001B3 % TWO_TO_64
    return _avalanche(mixed)


def stream_of(worker, step):
    """The stream of one worker's step: 24 bits of worker above 40 bits of step."""
    if not 0 <= worker < 1 << 24 or not 0 <= step < 1 << 40:
        raise UsageError(f"a random stream needs worker in [0, 2**24) and step in [0, 2**40), got {worker!r}, {step!r}")
    return worker << 40 | step


@kernel
def random_bits(out, key, stream, offset):
    """Fill a uint32 (or wider integer) array with uniform 32-bit words."""
    _put(out, _words(out, key, stream, offset))


@kernel
def uniform(out, key, stream, offset, low, high):
    """Fill with values of [low, high)."""
    xp = module_of(out)
    drawn = low + (high - low) * _open_unit(_words(out, key, stream, offset))
    xp.minimum(drawn, largest_below(high, low, out.dtype), out=drawn)
    _put(out, drawn)


@kernel
def normal(out, key, stream, offset, mean, std):
    """Fill with normal values by Box and Muller: elements 2j and 2j + 1 share one radius and angle."""
    xp = module_of(out)
    skip = offset & 1
    pairs = (out.size + skip + 1) // 2
    words = _line_of_words(xp, 2 * pairs, key, stream, offset - skip).reshape(pairs, 2)
    radius = xp.sqrt(-2.0 * _log_of_unit(words[:, 0]))
    cosine, sine = _turn(words[:, 1])
    drawn = xp.stack([radius * cosine, radius * sine], axis=1).reshape(-1)[skip:skip + out.size]
    _put(out, mean + std * drawn)


@kernel
def truncated_normal(out, key, stream, offset, mean, std):
    """Fill with normal values cut at two standard deviations; each element is one draw, none is rejected."""
    xp = module_of(out)
    x = TWO_SIGMA * (2.0 * _open_unit(_words(out, key, stream, offset)) - 1.0)
    square = x * x
    z = x * polynomial(QUANTILE_ABOVE, square) / polynomial(QUANTILE_BELOW, square)
    _put(out, mean + std * xp.clip(z, -2.0, 2.0))


@kernel
def bernoulli_mask(out, key, stream, offset, probability):
    """Fill with 1 (True) at the given probability, else 0: exactly never at 0, always at 1."""
    _put(out, _words(out, key, stream, offset) < threshold_of(probability))


@kernel
def integers(out, key, stream, offset, low, high):
    """Fill with whole numbers of [low, high), a range of at most 2**32."""
    span = span_of(low, high)
    drawn = _words(out, key, stream, offset) * span >> 32
    _put(out, drawn.astype("int64") + low)


def largest_below(high, low, dtype):
    """The largest value of ``dtype`` under ``high``: rounding to float32 must not reach it."""
    kind = np.dtype(dtype).type
    return float(np.nextafter(kind(high), kind(low)))


def threshold_of(probability):
    """How many of the 2**32 words count as drawn."""
    if not 0.0 <= probability <= 1.0:
        raise UsageError(f"a probability lies in [0, 1], got {probability!r}")
    return round(probability * 2.0 ** 32)


def span_of(low, high):
    """high - low, checked: one 32-bit word per element cannot reach further."""
    if not 0 < high - low <= 1 << 32:
        raise UsageError(f"random integers need low < high and a range of at most 2**32, got [{low!r}, {high!r})")
    return int(high - low)


def philox_block(xp, counter, key):
    """Ten rounds over four uint64 arrays that hold 32-bit counters, keyed by two 32-bit integers."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        even = c0 * MULTIPLIERS[0]
        odd = c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = (odd >> 32) ^ c1 ^ k0, odd & WORD, (even >> 32) ^ c3 ^ k1, even & WORD
        k0, k1 = k0 + WEYL[0] & WORD, k1 + WEYL[1] & WORD
    return xp.stack([c0, c1, c2, c3], axis=-1)


def polynomial(coefficients, x):
    """Horner's rule, lowest coefficient first in the list; the order of operations is part of the result."""
    total = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def _avalanche(value):
    """splitmix64's finish: every bit of the input reaches every bit of the key."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % TWO_TO_64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % TWO_TO_64
    return value ^ value >> 31


def _words(out, key, stream, offset):
    return _line_of_words(module_of(out), out.size, key, stream, offset)


def _put(out, line):
    out[...] = line.astype(out.dtype).reshape(out.shape)


def _line_of_words(xp, size, key, stream, offset):
    """Words offset .. offset + size of the draw, as uint64 so that products keep their upper halves."""
    first, skip = offset >> 2, offset & 3
    block = xp.arange((skip + size + 3) >> 2, dtype="uint64") + first
    counter = (block & WORD, block >> 32,
               xp.full_like(block, stream & WORD), xp.full_like(block, stream >> 32 & WORD))
    words = philox_block(xp, counter, (key & WORD, key >> 32 & WORD))
    return words.reshape(-1)[skip:skip + size]


def _open_unit(words):
    """A word as a float64 in the middle of its cell of (0, 1): neither end occurs."""
    return (words.astype("float64") + 0.5) * UNIT


def _log_of_unit(words):
    """log of _open_unit(words)."""
    bits = _open_unit(words).view("int64")
    exponent = bits - ROOT_HALF_BITS >> 52
    mantissa = (bits - (exponent << 52)).view("float64")
    s = (mantissa - 1.0) / (mantissa + 1.0)
    return exponent.astype("float64") * math.log(2.0) + 2.0 * s * polynomial(LOG_SERIES, s * s)


def _turn(words):
    """Cosine and sine of the angle that a word is of a whole turn."""
    xp = module_of(words)
    quarter = words + (1 << 29) >> 30
    angle = (words.astype("float64") + 0.5 - quarter.astype("float64") * 2.0 ** 30) * RADIANS_PER_WORD
    square = angle * angle
    sine, cosine = angle * polynomial(SINE_SERIES, square), polynomial(COSINE_SERIES, square)
    swapped = (quarter & 1) == 1
    sign_of_cosine = 1.0 - (quarter + 1 & 2).astype("float64")
    sign_of_sine = 1.0 - (quarter & 2).astype("float64")
    return sign_of_cosine * xp.where(swapped, sine, cosine), sign_of_sine * xp.where(swapped, cosine, sine)
