"""Initializers: each adds, to a startup program's block, the op that gives a variable its first values."""

import math

import numpy as np

from fleet_mpi.errors import UsageError


class Initializer:
    """Base: ``initializer(var, block)`` adds the op."""

    def __call__(self, var, block):
        type, attrs = self.op_for(var)
        return block._prepend_op(type, outputs={"Out": [var.name]},
                                 attrs={"shape": list(var.shape), "dtype": var.dtype.value, **attrs})

    def op_for(self, var):
        """The op type and attributes that fill ``var``."""
        raise NotImplementedError(type(self).__name__)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


class Constant(Initializer):
    """One value everywhere."""

    def __init__(self, value=0.0, force_cpu=False):
        self.value = value

    def op_for(self, var):
        """fill_constant."""
        return "fill_constant", {"value": float(self.value)}


class Uniform(Initializer):
    """Evenly between ``low`` and ``high``."""

    def __init__(self, low=-1.0, high=1.0, seed=0, diag_num=0, diag_step=0, diag_val=1.0):
        if low > high:
            raise UsageError(f"Uniform: low {low} is above high {high}")
        if diag_num:
            raise UsageError("Uniform: diag_num is not supported; use NumpyArrayInitializer")
        self.low, self.high, self.seed = low, high, seed

    def op_for(self, var):
        """uniform_random."""
        return "uniform_random", {"min": float(self.low), "max": float(self.high), "seed": self.seed}


class Normal(Initializer):
    """Normally distributed."""

    type = "gaussian_random"

    def __init__(self, loc=0.0, scale=1.0, seed=0):
        self.loc, self.scale, self.seed = loc, scale, seed

    def op_for(self, var):
        """gaussian_random, or its truncated form."""
        return self.type, {"mean": float(self.loc), "std": float(self.scale), "seed": self.seed}


class TruncatedNormal(Normal):
    """Normally distributed, cut at two standard deviations."""

    type = "truncated_gaussian_random"


def fans(var):
    """Fan-in and fan-out: of a matrix its rows and columns, of a filter times its window."""
    shape = var.shape
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    if len(shape) == 2:
        return shape[0], shape[1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


class Xavier(Initializer):
    """Glorot: variance 2 / (fan_in + fan_out)."""

    def __init__(self, uniform=True, fan_in=None, fan_out=None, seed=0):
        self.uniform, self.fan_in, self.fan_out, self.seed = uniform, fan_in, fan_out, seed

    def op_for(self, var):
        """uniform_random or gaussian_random."""
        fan_in, fan_out = fans(var)
        total = (self.fan_in if self.fan_in is not None else fan_in) + (
            self.fan_out if self.fan_out is not None else fan_out)
        if self.uniform:
            return Uniform(-math.sqrt(6.0 / total), math.sqrt(6.0 / total), self.seed).op_for(var)
        return Normal(0.0, math.sqrt(2.0 / total), self.seed).op_for(var)


class MSRA(Initializer):
    """He: variance 2 / fan_in."""

    def __init__(self, uniform=True, fan_in=None, seed=0):
        self.uniform, self.fan_in, self.seed = uniform, fan_in, seed

    def op_for(self, var):
        """uniform_random or gaussian_random."""
        fan_in = self.fan_in if self.fan_in is not None else fans(var)[0]
        if self.uniform:
            return Uniform(-math.sqrt(6.0 / fan_in), math.sqrt(6.0 / fan_in), self.seed).op_for(var)
        return Normal(0.0, math.sqrt(2.0 / fan_in), self.seed).op_for(var)


class Bilinear(Initializer):
    """Weights of a transposed convolution that upsamples bilinearly."""

    def op_for(self, var):
        """assign_value."""
        if len(var.shape) != 4 or var.shape[2] != var.shape[3]:
            raise UsageError(f"Bilinear: expected a square 4-d filter, got {var.shape}")
        size = var.shape[3]
        factor = math.ceil(size / 2.0)
        centre = (2 * factor - 1 - factor % 2) / (2.0 * factor)
        line = 1 - np.abs(np.arange(size) / factor - centre)
        return NumpyArray(np.broadcast_to(np.outer(line, line), var.shape)).op_for(var)


class NumpyArray(Initializer):
    """The values of an array."""

    def __init__(self, value):
        self.value = np.array(value)

    def op_for(self, var):
        """assign_value."""
        if tuple(self.value.shape) != tuple(var.shape):
            raise UsageError(f"NumpyArrayInitializer: {var.name!r} has shape {var.shape}, "
                             f"the array {self.value.shape}")
        return "assign_value", {"values": self.value.astype(var._dtype)}


_global_initializers = {"weight": None, "bias": None}


def set_global_initializer(weight_init, bias_init=None):
    """Use these for all parameters made from now on that do not name their own."""
    _global_initializers.update(weight=weight_init, bias=bias_init)


def default_for(is_bias, layer_default=None):
    """The initializer of a parameter that names none: the global one, the layer's, or zeros / Xavier."""
    chosen = _global_initializers["bias" if is_bias else "weight"]
    return chosen or layer_default or (Constant(0.0) if is_bias else Xavier())


ConstantInitializer, UniformInitializer, NormalInitializer = Constant, Uniform, Normal
TruncatedNormalInitializer, XavierInitializer, MSRAInitializer = TruncatedNormal, Xavier, MSRA
BilinearInitializer, NumpyArrayInitializer = Bilinear, NumpyArray
