"""Ops of program/ops/group_normalization.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def by_group(inputs, groups, epsilon, axis):
    """Sample by sample and group by group; (y, means, inverse deviations)."""
    given = np.moveaxis(inputs["X"], axis, 1)
    out, width = np.empty_like(given), given.shape[1] // groups
    means, inverses = np.empty((len(given), groups)), np.empty((len(given), groups))
    for i, sample in enumerate(given):
        for g in range(groups):
            part = sample[g * width:(g + 1) * width]
            means[i, g], inverses[i, g] = part.mean(), 1 / np.sqrt(part.var() + epsilon)
            out[i, g * width:(g + 1) * width] = (part - means[i, g]) * inverses[i, g]
    for channel in range(given.shape[1]):
        out[:, channel] = (out[:, channel] * inputs.get("Scale", np.ones(99))[channel]
                           + inputs.get("Bias", np.zeros(99))[channel])
    return np.moveaxis(out, 1, axis), means, inverses


def group_case(shape, groups, layout="NCHW", affine=True):
    axis = len(shape) - 1 if layout == "NHWC" else 1
    inputs = {"X": x(*shape), **({"Scale": x(shape[axis]), "Bias": x(shape[axis])} if affine else {})}

    def expect(inputs, attrs):
        return dict(zip(("Y", "Mean", "Variance"), by_group(inputs, groups, 1e-3, axis)))
    return Case("group_norm", inputs, {"groups": groups, "epsilon": 1e-3, "data_layout": layout}, expect,
                grads="X Scale Bias" if affine else "X", by="Y", note=f"{shape}by{groups}{layout}")


def instance_case(shape, affine=True):
    inputs = {"X": x(*shape), **({"Scale": x(shape[1]), "Bias": x(shape[1])} if affine else {})}

    def expect(inputs, attrs):
        y, means, inverses = by_group(inputs, shape[1], 1e-3, 1)
        return {"Y": y, "SavedMean": means.reshape(-1), "SavedVariance": inverses.reshape(-1)}
    return Case("instance_norm", inputs, {"epsilon": 1e-3}, expect, grads="X Scale Bias" if affine else "X", by="Y",
                note=str(shape))


def lrn(inputs, attrs):
    given = np.moveaxis(inputs["X"], 3 if attrs.get("data_format") == "NHWC" else 1, 0)
    n, middle = attrs["n"], np.empty_like(given)
    for c in range(len(given)):
        first = max(c - (n - 1) // 2, 0)
        last = min(c - (n - 1) // 2 + n, len(given))
        middle[c] = attrs["k"] + attrs["alpha"] * (given[first:last] ** 2).sum(0)
    out = given * middle ** -attrs["beta"]
    return {slot: np.moveaxis(value, 0, 3 if attrs.get("data_format") == "NHWC" else 1)
            for slot, value in (("Out", out), ("MidOut", middle))}


def lrn_case(shape, n, **more):
    return Case("lrn", {"X": x(*shape)}, {"n": n, "k": 2.0, "alpha": 0.3, "beta": 0.75, **more}, lrn, grads="X",
                note=f"{n}of{shape}")


def spectral(inputs, attrs):
    matrix = np.moveaxis(inputs["Weight"], attrs["dim"], 0)
    matrix, u, v = matrix.reshape(len(matrix), -1), inputs["U"], inputs["V"]
    for _ in range(attrs["power_iters"]):
        v = matrix.T @ u
        v = v / (np.linalg.norm(v) + attrs["eps"])
        u = matrix @ v
        u = u / (np.linalg.norm(u) + attrs["eps"])
    return {"Out": inputs["Weight"] / (u @ matrix @ v)}


def spectral_case(shape, dim, iterations, grads=""):
    rows = shape[dim]
    inputs = {"Weight": x(*shape), "U": x(rows), "V": x(int(np.prod(shape)) // rows)}
    return Case("spectral_norm", inputs, {"dim": dim, "power_iters": iterations, "eps": 1e-12}, spectral, grads=grads,
                note=f"{shape}{dim}x{iterations}")


CASES = [
    group_case((2, 4, 3, 2), 2), group_case((2, 4, 3), 1), group_case((1, 6, 2, 2), 6, affine=False),
    group_case((2, 3, 2, 4), 2, "NHWC"), group_case((2, 4), 2),
    instance_case((2, 3, 2, 2)), instance_case((2, 3, 4)), instance_case((1, 2, 2, 1, 3), affine=False),
    lrn_case((2, 6, 2, 2), 5), lrn_case((1, 5, 1, 2), 4), lrn_case((1, 2, 2, 2), 5),
    lrn_case((1, 2, 2, 6), 3, data_format="NHWC"),
    # The vectors count as constants in the gradient, which differences see only without iterations.
    spectral_case((3, 4), 0, 0, grads="Weight"), spectral_case((2, 3, 2, 2), 1, 0, grads="Weight"),
    spectral_case((3, 4), 0, 2), spectral_case((4, 3, 2), 1, 20),
]

test_forward, test_gradient, test_device = checks(CASES)


def test_many_iterations_find_the_largest_singular_value():
    case = spectral_case((5, 4), 0, 200)
    np.testing.assert_allclose(case.expected()["Out"][0] * np.linalg.norm(case.inputs["Weight"], 2),
                               case.inputs["Weight"], rtol=1e-6)


@pytest.mark.parametrize("type, attrs, words", [("group_norm", {"groups": 2}, "divide the 3 channels"),
                                                ("lrn", {}, "expected images")])
def test_shapes_that_do_not_fit_are_refused_while_building(type, attrs, words):
    given = static_data("given", [2, 3, 4])
    outputs = {"Y": ["y"], "Mean": ["m"], "Variance": ["v"]} if type == "group_norm" else {"Out": ["o"],
                                                                                           "MidOut": ["m"]}
    with pytest.raises(ProgramError, match=words):
        given.block.append_op(type, {"X": [given]}, outputs, attrs)
