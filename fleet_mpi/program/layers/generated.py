"""Layers made from the op table, for ops that have none of their own: ``layer_function_generator`` of the original."""

import re

from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph import registry


def generate_layer_fn(op_type):
    """A layer that adds one op of this type.

    Its inputs are given by position, or by the slots' names in small letters; other keywords are attributes. It returns
    the op's first output.
    """
    known = registry.find(op_type)
    slots = {_small(slot): slot for slot in known.inputs}

    def layer(*args, name=None, act=None, **kwargs):
        given = dict(zip([one for one in slots if one not in kwargs], args))
        given.update((one, kwargs.pop(one)) for one in list(kwargs) if one in slots)
        _refuse_strangers(op_type, kwargs, known.attrs)
        helper = LayerHelper(op_type, name=name, act=act, **given)
        inputs = {slots[one]: helper.multiple_input(one) for one, value in given.items() if value is not None}
        dtype = helper.input_dtype(next(iter(given))) if given else "float32"
        outputs = {slot: [helper.create_variable_for_type_inference(dtype)] for slot in known.outputs}
        helper.append_op(op_type, inputs, outputs, kwargs)
        return helper.append_activation(outputs[next(iter(known.outputs))][0])
    layer.__name__ = layer.__qualname__ = op_type
    layer.__doc__ = f"One op {op_type}: inputs {', '.join(slots) or 'none'}; " \
                    f"attributes {', '.join(known.attrs) or 'none'}."
    return layer


def elementwise_of(helper):
    """The op that a LayerHelper is named after, of its arguments ``x``, ``y`` and ``axis``, and its activation."""
    x, y = helper.input("x"), helper.input("y")
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(helper.layer_type, {"X": [x], "Y": [y]}, {"Out": [out]}, {"axis": helper.kwargs.get("axis", -1)})
    return helper.append_activation(out)


def _small(slot):
    """A slot's name as an argument: ``RoisNum`` is ``rois_num``."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", slot).lower()


def _refuse_strangers(op_type, kwargs, attrs):
    for name in kwargs.keys() - attrs:
        raise UsageError(f"{op_type} has neither an input nor an attribute {name!r}; {nearest(name, attrs)}")
