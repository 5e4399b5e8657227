"""Arguments that are numbers or variables: how they enter an op, as attributes or as the inputs that stand for them."""

from numbers import Integral

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph.variable import Variable


def numbers_given(layer, numbers, whole="ShapeTensor", parts="ShapeTensorList"):
    """How a list of numbers and variables, or one variable that holds them, enters an op: (inputs, attribute)."""
    if isinstance(numbers, Variable):
        return {whole: [numbers]}, []
    if not isinstance(numbers, (list, tuple, np.ndarray)):
        raise UsageError(f"{layer}: expected a list of numbers, or a variable of them, got {numbers!r}")
    if not any(isinstance(one, Variable) for one in numbers):
        return {}, [-1 if one is None else as_int(one) for one in numbers]
    each = [one if isinstance(one, Variable) else _constant(layer, as_int(one)) for one in numbers]
    return {parts: each}, [-1 if isinstance(one, Variable) else as_int(one) for one in numbers]


def _constant(layer, value):
    helper = LayerHelper(layer)
    out = helper.create_variable_for_type_inference("int32", stop_gradient=True)
    helper.append_op("fill_constant", outputs={"Out": [out]}, attrs={"shape": [1], "value": value, "dtype": "int32"})
    return out


def as_int(value):
    """A number that is known now as an int."""
    if isinstance(value, str):
        raise UsageError(f"expected a whole number, got {value!r}")
    return int(value)


def listed(numbers):
    """Whole numbers that are known now, one, several or None, as a list."""
    if isinstance(numbers, (Integral, Variable, str)):
        return [as_int(numbers)]
    return [as_int(one) for one in (() if numbers is None else numbers)]


def number_given(value, attr, slot, kind=as_int):
    """How one argument, a variable or what ``kind`` makes of it, enters an op: (inputs, attributes)."""
    return ({slot: value}, {}) if isinstance(value, Variable) else ({}, {attr: kind(value)})
