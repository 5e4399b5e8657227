"""Ops of program/ops/tensor_products.py."""

import math

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def bilinear(inputs, attrs):
    rows = zip(inputs["X"], inputs["Y"])
    out = np.array([[one @ matrix @ other for matrix in inputs["Weight"]] for one, other in rows])
    return {"Out": out + inputs.get("Bias", 0)}


def einstein(equation, *shapes):
    return Case("einsum", {"Operands": [x(*shape) for shape in shapes]}, {"equation": equation},
                lambda inputs, attrs: {"Out": np.atleast_1d(np.einsum(attrs["equation"], *inputs["Operands"]))},
                grads="Operands", note=equation)


def encoded(lengths):
    def expect(inputs, attrs):
        given, width = inputs["X"], inputs["X"][0].shape[-1] if isinstance(inputs["X"],
                                                                           tuple) else inputs["X"].shape[-1]
        flat = given[0] if isinstance(given, tuple) else given.reshape(-1, width)
        half, out = width // 2, np.empty_like(flat)
        places = [place for length in lengths for place in range(length)]
        for row, place in enumerate(places):
            for i in range(half):
                angle = place / 10000 ** (i / (half - 1)) if half > 1 else place / 10000
                for column, wave in ((i, math.sin(angle)), (half + i, math.cos(angle))):
                    out[row, column] = attrs["alpha"] * flat[row, column] + attrs["beta"] * wave
        return {"Out": out if isinstance(given, tuple) else out.reshape(given.shape)}
    return expect


SCALES = {"alpha": 0.7, "beta": 1.3}
CASES = [
    Case("bilinear_tensor_product", {"X": x(3, 2), "Y": x(3, 4), "Weight": x(5, 2, 4), "Bias": x(1, 5)}, {}, bilinear,
         grads="X Y Weight Bias"),
    Case("bilinear_tensor_product", {"X": x(2, 2), "Y": x(2, 1), "Weight": x(2, 2, 1)}, {}, bilinear,
         grads="X Y Weight", note="nobias"),
    einstein("ij,jk->ik", (2, 3), (3, 4)), einstein("bij,bkj->bik", (2, 3, 2), (2, 2, 2)), einstein("i,j", (2,), (3,)),
    einstein("ij->ji", (2, 3)), einstein("ij->", (2, 3)), einstein("ij,ij->i", (2, 3), (2, 3)),
    einstein("...ij,...jk->...ik", (2, 1, 2), (2, 2, 3)), einstein("...i,ij->...j", (2, 2, 3), (3, 2)),
    einstein("ij,jk,kl->il", (2, 3), (3, 2), (2, 2)), einstein("bhqd,bkhd->bhqk", (1, 2, 2, 3), (1, 2, 2, 3)),
    einstein("ij,kl->ik", (2, 3), (2, 2)), einstein("a,ab,c->b", (2,), (2, 2), (3,)),
    Case("add_position_encoding", {"X": x(2, 3, 4)}, SCALES, encoded([3, 3]), grads="X"),
    Case("add_position_encoding", {"X": (x(5, 2), [[2, 3]])}, SCALES, encoded([2, 3]), grads="X", note="sequences"),
]

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("equation, words", [("ij,jk->ik", "names 2 operands, got 1"), ("ii->i", "diagonal"),
                                             ("ijk->i", "does not fit"), ("ij->k", "must be different ones")])
def test_equations_that_do_not_fit_are_refused_while_building(equation, words):
    value = static_data("value", [3, 3])
    with pytest.raises(ProgramError, match=words):
        value.block.append_op("einsum", {"Operands": [value]}, {"Out": ["out"]}, {"equation": equation})
