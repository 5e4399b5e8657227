"""Ops of program/ops/diagonals.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def trace(shape, **attrs):
    def expect(inputs, attrs):
        moved = np.moveaxis(inputs["Input"], (attrs.get("axis1", 0), attrs.get("axis2", 1)), (0, 1))
        offset = attrs.get("offset", 0)
        total = sum((moved[i, i + offset] for i in range(moved.shape[0]) if 0 <= i + offset < moved.shape[1]),
                    np.zeros(moved.shape[2:]))
        return {"Out": np.reshape(total, moved.shape[2:] or (1,))}
    return Case("trace", {"Input": x(*shape)}, attrs, expect, grads="Input", note=f"{shape}{attrs}")


def embedded(shape, **attrs):
    def expect(inputs, attrs):
        line, offset = inputs["Input"], attrs.get("offset", 0)
        size = line.shape[-1] + abs(offset)
        out = np.zeros(line.shape[:-1] + (size, size))
        for i in range(line.shape[-1]):
            out[..., i + max(-offset, 0), i + max(offset, 0)] = line[..., i]
        return {"Out": np.moveaxis(out, (-2, -1), (attrs.get("dim1", -2), attrs.get("dim2", -1)))}
    return Case("diag_embed", {"Input": x(*shape)}, attrs, expect, grads="Input", note=f"{shape}{attrs}")


def diag(shape, **attrs):
    def expect(inputs, attrs):
        offset = attrs.get("offset", 0)
        made = np.diag(inputs["X"], offset)
        if inputs["X"].ndim == 1:
            made = np.where(np.eye(len(made), k=offset) == 1, made, attrs.get("padding_value", 0))
        return {"Out": made}
    return Case("diag_v2", {"X": x(*shape)}, attrs, expect, grads="X", note=f"{shape}{attrs}")


CASES = [
    trace((3, 3)), trace((2, 4), offset=1), trace((4, 2), offset=-3), trace((2, 3), offset=7),
    trace((2, 3, 4), axis1=1, axis2=2), trace((2, 3, 2), axis1=-1, axis2=0, offset=1),
    trace((2, 3, 2, 2), axis1=0, axis2=2),
    embedded((3,)), embedded((2, 3), offset=1), embedded((2, 2), offset=-2), embedded((2, 3), dim1=0, dim2=2),
    embedded((2, 2), dim1=2, dim2=0, offset=1),
    diag((3,)), diag((2,), offset=2, padding_value=6.5), diag((2,), offset=-1), diag((3, 3)), diag((2, 4), offset=1),
    diag((3, 2), offset=-1), diag((2, 2), offset=3),
]

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("type, slot, shape, attrs, words", [
    ("trace", "Input", [2, 2], {"axis1": 1, "axis2": -1}, "two different axes"),
    ("diag_embed", "Input", [2], {"dim1": 0, "dim2": -2}, "two different axes"),
    ("diag_v2", "X", [2, 2, 2], {}, "a vector or a matrix")])
def test_what_has_no_diagonal_is_refused(type, slot, shape, attrs, words):
    value = static_data("value", shape)
    with pytest.raises(ProgramError, match=words):
        value.block.append_op(type, {slot: [value]}, {"Out": ["out"]}, attrs)
