"""Ops of program/ops/fused.py."""

import numpy as np

from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def sum_and_relu(inputs, attrs):
    x, y, axis = inputs["X"], inputs["Y"], attrs.get("axis", -1)
    if axis >= 0:
        y = y.reshape(y.shape + (1,) * (x.ndim - axis - y.ndim))
    return {"Out": np.maximum(x + y, 0)}


def case(x, y, grads="", **attrs):
    return Case("fused_elemwise_activation", {"X": rng.normal(size=x), "Y": rng.normal(size=y)}, attrs, sum_and_relu,
                grads, note=f"{x}{y}{attrs}")


CASES = [case((3, 4), (3, 4)), case((2, 3, 4, 2), (3,), axis=1), case((2, 3, 4), (3, 4), axis=1),
         case((2, 1), (1, 3)), case((3,), (2, 3)), case((2, 3), (1,)), case((1, 3), (3,)),
         case((3, 4), (4,), "X Y"), case((3, 4), (4,), "X Y", axis=1), case((2, 3, 4), (4,), "X Y", axis=2),
         case((5, 2), (2,), "Y"), case((5, 2), (2,), "X")]

test_forward, test_gradient, test_device = checks(CASES)
