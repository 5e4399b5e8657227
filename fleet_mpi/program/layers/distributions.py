"""Probability distributions whose samples, densities, entropies and divergences are variables of the program.

Parameters are numbers, arrays or variables. Knows no drawing of its own: samples come from the random ops.
"""

import math

import numpy as np

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers import activation, comparison, manipulation, nn, reduction, tensor
from fleet_mpi.program.layers.math import cast, elementwise_add, elementwise_mul, scale
from fleet_mpi.program.layers.positions import multinomial


class Distribution:
    """Base of all; what a distribution does not have says so."""

    def sample(self, shape=(), seed=0):
        """Draw values: ``shape`` followed by the shape of the parameters."""
        raise NotBuilt(f"{type(self).__name__} has no sample")

    def entropy(self):
        """The expected surprise."""
        raise NotBuilt(f"{type(self).__name__} has no entropy")

    def log_prob(self, value):
        """The logarithm of the density (or probability) of values."""
        raise NotBuilt(f"{type(self).__name__} has no log_prob")

    def probs(self, value):
        """The density (or probability) of values."""
        return activation.exp(self.log_prob(value))

    def kl_divergence(self, other):
        """How much more surprising these values are to another distribution of the same kind."""
        raise NotBuilt(f"{type(self).__name__} has no kl_divergence")

    def _same_kind(self, other):
        if not isinstance(other, type(self)):
            raise UsageError(f"kl_divergence: expected another {type(self).__name__}, got {type(other).__name__}")


def as_variable(value):
    """A parameter as a variable; numbers have shape [1]."""
    if isinstance(value, Variable):
        return value
    return tensor.assign(np.atleast_1d(np.asarray(value, "float32")))


class _OfTwo(Distribution):
    """A distribution with two parameters that stretch to each other."""

    def _take(self, one, two):
        self._are_numbers = all(isinstance(value, (int, float)) for value in (one, two))
        return as_variable(one), as_variable(two)

    def _drawn(self, shape, seed, one, two, draw):
        """Unit draws for every sample and parameter; ``draw(like or shape)`` makes them."""
        # Adding nothing stretches both parameters to one shape, whatever of it is known while building.
        both = one + two * 0.0
        if -1 in both.shape:
            return draw(tensor.shape(both) if not shape else _longer(shape, both), seed)
        return draw([*shape, *both.shape], seed)

    def _shaped(self, unit, width, start, shape):
        # Not by operators: they lay a variable of unknown length along the first dimension, not the last.
        out = elementwise_add(elementwise_mul(unit, width), start)
        return manipulation.reshape(out, list(shape)) if self._are_numbers and shape else out


def _longer(shape, like):
    """The sizes of samples as a variable: those wanted, then those of a variable."""
    return manipulation.concat([tensor.assign(np.array(shape, "int32")), tensor.shape(like)], 0)


class Uniform(_OfTwo):
    """Evenly from ``low`` to ``high``."""

    def __init__(self, low, high, name=None):
        self.low, self.high = self._take(low, high)

    def sample(self, shape=(), seed=0):
        """Draw values."""
        unit = self._drawn(shape, seed, self.low, self.high,
                           lambda sizes, seed: tensor.uniform_random(sizes, min=0.0, max=1.0, seed=seed))
        return self._shaped(unit, self.high - self.low, self.low, shape)

    def log_prob(self, value):
        """Minus infinity outside."""
        inside = [cast(one, value.dtype) for one in (comparison.less_than(self.low, value),
                                                     comparison.less_than(value, self.high))]
        return activation.log(elementwise_mul(*inside)) - activation.log(self.high - self.low)

    def probs(self, value):
        """0 outside."""
        inside = [cast(one, value.dtype) for one in (comparison.less_than(self.low, value),
                                                     comparison.less_than(value, self.high))]
        return elementwise_mul(*inside) / (self.high - self.low)

    def entropy(self):
        """log(high - low)."""
        return activation.log(self.high - self.low)


class Normal(_OfTwo):
    """Around ``loc`` with the standard deviation ``scale``."""

    def __init__(self, loc, scale, name=None):
        self.loc, self.scale = self._take(loc, scale)

    def sample(self, shape=(), seed=0):
        """Draw values."""
        unit = self._drawn(shape, seed, self.loc, self.scale,
                           lambda sizes, seed: tensor.gaussian_random(sizes, seed=seed))
        return self._shaped(unit, self.scale, self.loc, shape)

    def log_prob(self, value):
        """-(value - loc)^2 / (2 scale^2) - log(scale) - log(2 pi) / 2."""
        off = activation.square((value - self.loc) / self.scale)
        return scale(off, -0.5) - activation.log(self.scale) - 0.5 * math.log(2 * math.pi)

    def entropy(self):
        """1 / 2 + log(2 pi) / 2 + log(scale), in the shape that both parameters span."""
        return activation.log(self.scale + self.loc * 0.0) + (0.5 + 0.5 * math.log(2 * math.pi))

    def kl_divergence(self, other):
        """By the ratio of variances and the distance of means."""
        self._same_kind(other)
        ratio = activation.square(self.scale / other.scale)
        off = activation.square((self.loc - other.loc) / other.scale)
        return scale(ratio + off - activation.log(ratio), 0.5, -0.5)


class Categorical(Distribution):
    """Classes with the probabilities softmax(logits) along the last dimension."""

    def __init__(self, logits, name=None):
        self.logits = as_variable(logits)

    def sample(self, shape=(), seed=0):
        """Draw class numbers: ``shape``, then the logits' shape without the classes."""
        count = math.prod(shape) if shape else 1
        drawn = multinomial(nn.softmax(self.logits), count, replacement=True, seed=seed)
        if len(self.logits.shape) > 1:
            drawn = manipulation.transpose(drawn, [1, 0])
        return manipulation.reshape(drawn, [*(shape or [1]), *self.logits.shape[:-1]])

    def log_prob(self, value):
        """Of class numbers: any number of them of one distribution, else one (or more) for each row of logits."""
        return self._at(nn.log_softmax(self.logits), value)

    def _at(self, table, value):
        if len(self.logits.shape) == 1:
            return manipulation.reshape(manipulation.gather(table, manipulation.reshape(value, [-1])),
                                        list(value.shape))
        marks = manipulation.one_hot_v2(value, self.logits.shape[-1])
        return reduction.reduce_sum(elementwise_mul(marks, table), -1)

    def entropy(self):
        """-sum p log p, with the last dimension kept as 1."""
        logs = nn.log_softmax(self.logits)
        return scale(reduction.reduce_sum(activation.exp(logs) * logs, -1, True), -1.0)

    def kl_divergence(self, other):
        """sum p (log p - log q), with the last dimension kept as 1."""
        self._same_kind(other)
        logs = nn.log_softmax(self.logits)
        return reduction.reduce_sum(activation.exp(logs) * (logs - nn.log_softmax(other.logits)), -1, True)


class WeighedCategorical(Categorical):
    """2.x: as the original does, ``probs`` and ``log_prob`` take the logits for weights; all else takes their
    softmax."""

    def probs(self, value):
        """A class's share of the weights."""
        return self._at(self.logits / reduction.reduce_sum(self.logits, -1, True), value)

    def log_prob(self, value):
        """Its logarithm."""
        return activation.log(self.probs(value))


class MultivariateNormalDiag(Distribution):
    """Independent normal values around ``loc``; ``scale`` is their covariance, a diagonal matrix."""

    def __init__(self, loc, scale):
        self.loc, self.scale = as_variable(loc), as_variable(scale)

    def _variances(self):
        """The diagonal."""
        return reduction.reduce_sum(self.scale * tensor.eye(self.scale.shape[0]), -1)

    def _log_det(self):
        return reduction.reduce_sum(activation.log(self._variances()))

    def entropy(self):
        """(k (1 + log(2 pi)) + log det scale) / 2."""
        return scale(self._log_det(), 0.5, 0.5 * self.scale.shape[0] * (1 + math.log(2 * math.pi)))

    def kl_divergence(self, other):
        """By the ratios of variances and the distance of means."""
        self._same_kind(other)
        off = other.loc - self.loc
        weighed = reduction.reduce_sum(off * off / other._variances())
        ratios = reduction.reduce_sum(self._variances() / other._variances())
        total = ratios + weighed + other._log_det() - self._log_det()
        return scale(total, 0.5, -0.5 * self.scale.shape[0])
