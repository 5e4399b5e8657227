"""Ops of program/ops/rearranging.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def shuffled(inputs, attrs):
    given, group = inputs["X"], attrs["group"]
    width = given.shape[1] // group
    return {"Out": given[:, [g * width + i for i in range(width) for g in range(group)]]}


def to_depth(inputs, attrs):
    """Number by number, with the original's index arithmetic."""
    given, block = inputs["X"], attrs["blocksize"]
    n, c, h, w = given.shape
    rest, flat = c // block ** 2, np.empty(given.size)
    for b, k, j, i in np.ndindex(n, c, h, w):
        row, column = j * block + k // rest // block, i * block + k // rest % block
        flat[column + w * block * (row + h * block * (k % rest + rest * b))] = given[b, k, j, i]
    return {"Out": flat.reshape(n, c * block ** 2, h // block, w // block)}


def pixels(inputs, attrs):
    given, r = inputs["X"], attrs["upscale_factor"]
    n, c, h, w = given.shape
    out = np.empty((n, c // r ** 2, h * r, w * r))
    for b, k, j, i in np.ndindex(out.shape):
        out[b, k, j, i] = given[b, k * r * r + j % r * r + i % r, j // r, i // r]
    return {"Out": out}


def shifted(inputs, attrs):
    given, steps = inputs["X"], attrs["seg_num"]
    one, two = (int(given.shape[1] * attrs["shift_ratio"] * share) for share in (1, 2))
    out = np.zeros_like(given)
    for i, c in np.ndindex(given.shape[:2]):
        move = -1 if c < one else 1 if c < two else 0
        if 0 <= i % steps + move < steps:
            out[i, c] = given[i + move, c]
    return {"Out": out}


def maxed(inputs, attrs):
    given = np.moveaxis(inputs["X"], attrs["axis"], 0)
    groups = attrs["groups"]
    out = np.stack([given[i:i + groups].max(0) for i in range(0, len(given), groups)])
    return {"Out": np.moveaxis(out, 0, attrs["axis"])}


def chosen(inputs, attrs):
    return {"Out": np.stack([inputs["X"][number][i] for i, number in enumerate(inputs["Ids"].reshape(-1))])}


def cornered(inputs, attrs):
    out = np.full(inputs["X"].shape, attrs["pad_value"])
    out[tuple(slice(n) for n in inputs["Y"].shape)] = inputs["Y"]
    return {"Out": out}


def part(offsets, sizes):
    return lambda inputs, attrs: {"Out": inputs["X"][tuple(slice(o, o + n) for o, n in zip(offsets, sizes))]}


def triangle(inputs, attrs):
    out = inputs["X"].copy()
    for index in np.ndindex(out.shape):
        above = index[-1] - index[-2] - attrs["diagonal"]
        if above > 0 if attrs["lower"] else above < 0:
            out[index] = 0
    return {"Out": out}


def grid(inputs, attrs):
    return {"Out": list(np.meshgrid(*inputs["X"], indexing="ij"))}


CASES = [
    Case("shuffle_channel", {"X": x(2, 6, 2, 1)}, {"group": 3}, shuffled, grads="X"),
    Case("space_to_depth", {"X": x(1, 4, 2, 2)}, {"blocksize": 2}, to_depth, grads="X"),
    Case("space_to_depth", {"X": x(2, 8, 4, 2)}, {"blocksize": 2}, to_depth, grads="X", note="more"),
    Case("pixel_shuffle", {"X": x(2, 8, 2, 3)}, {"upscale_factor": 2}, pixels, grads="X"),
    Case("temporal_shift", {"X": x(6, 4, 2, 1)}, {"seg_num": 3, "shift_ratio": 0.25}, shifted, grads="X"),
    Case("temporal_shift", {"X": x(4, 3, 1, 1)}, {"seg_num": 2, "shift_ratio": 0.5}, shifted, grads="X", note="half"),
    Case("maxout", {"X": x(2, 6, 2, 2)}, {"groups": 3, "axis": 1}, maxed, grads="X"),
    Case("maxout", {"X": x(2, 2, 2, 4)}, {"groups": 2, "axis": 3}, maxed, grads="X", note="last"),
    Case("multiplex", {"X": [x(4, 2), x(4, 2), x(4, 2)], "Ids": np.array([[2], [0], [1], [0]], "int32")}, {}, chosen,
         grads="X"),
    Case("pad_constant_like", {"X": x(3, 4), "Y": x(2, 4)}, {"pad_value": 1.5}, cornered, grads="Y"),
    Case("crop", {"X": x(3, 4)}, {"offsets": [1, 0], "shape": [2, 3]}, part([1, 0], [2, 3]), grads="X"),
    Case("crop", {"X": x(3, 4), "Y": x(2, 2)}, {"offsets": [1, 2]}, part([1, 2], [2, 2]), grads="X", note="likeY"),
    Case("crop", {"X": x(3, 4)}, {"shape": [2, -1]}, part([0, 0], [2, 4]), grads="X", note="from0"),
    Case("crop_tensor", {"X": x(3, 4)}, {"offsets": [1, 1], "shape": [-1, 2]}, part([1, 1], [2, 2]), grads="X"),
    Case("crop_tensor", {"X": x(3, 4), "Shape": np.array([2, 2], "int32"), "Offsets": np.array([0, 1], "int32")}, {},
         part([0, 1], [2, 2]), grads="X", note="by variables"),
    Case("crop_tensor", {"X": x(3, 4), "ShapeTensor": [np.array([2], "int32"), np.array([2], "int32")],
                         "OffsetsTensor": [np.array([1], "int32"), np.array([1], "int32")]},
         {"shape": [-1, 2], "offsets": [-1, 1]}, part([1, 1], [2, 2]), grads="X", note="by lists"),
    Case("tril_triu", {"X": x(3, 4)}, {"diagonal": 0, "lower": True}, triangle, grads="X"),
    Case("tril_triu", {"X": x(2, 3, 3)}, {"diagonal": 1, "lower": False}, triangle, grads="X", note="upper"),
    Case("tril_triu", {"X": x(3, 2)}, {"diagonal": -1, "lower": True}, triangle, grads="X", note="below"),
    Case("meshgrid", {"X": [x(2), x(3), x(1)]}, {}, grid, grads="X"),
]
CROPS = Case("random_crop", {"X": np.arange(2 * 50 * 6 * 7.0).reshape(2, 50, 6, 7)}, {"shape": [2, 3]},
             {"Out": np.zeros((2, 50, 2, 3))})

test_forward, test_gradient, test_device = checks(CASES)


def test_a_random_crop_is_a_part_of_each_sample_at_places_of_its_own():
    built = Built(CROPS)
    first = built.run(built.outputs["Out"])[0].reshape(100, 2, 3)
    corners = first[:, 0, 0] - np.arange(100) * 42
    assert set(corners.astype(int)) == {row * 7 + column for row in range(5) for column in range(5)}
    np.testing.assert_array_equal(first - first[:, :1, :1], np.broadcast_to([[0, 1, 2], [7, 8, 9]], first.shape))


def test_the_documented_example_of_space_to_depth():
    given = np.arange(16.0).reshape(1, 4, 2, 2)
    built = Built(Case("space_to_depth", {"X": given}, {"blocksize": 2}, to_depth))
    assert built.run(built.outputs["Out"])[0].reshape(-1).tolist() == [
        0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15]


def test_an_id_that_names_no_input_is_refused():
    built = Built(Case("multiplex", {"X": [x(2, 1), x(2, 1)], "Ids": np.array([[0], [2]], "int32")}, {},
                       {"Out": np.zeros((2, 1))}))
    with pytest.raises(ProgramError, match="id 2 at position 1"):
        built.run(built.outputs["Out"])


@pytest.mark.parametrize("type, attrs, words", [
    ("shuffle_channel", {"group": 2}, "divisible by 2"), ("maxout", {"groups": 2}, "divisible by 2"),
    ("crop", {"shape": [2, 9, 1, 1]}, "lies outside"), ("crop", {"shape": [2]}, "for each dimension"),
    ("random_crop", {"shape": [5, 1]}, "fits into")])
def test_sizes_that_do_not_fit_are_refused_while_building(type, attrs, words):
    value = static_data("value", [2, 3, 4, 4])
    with pytest.raises(ProgramError, match=words):
        value.block.append_op(type, {"X": [value]}, {"Out": ["out"]}, attrs)
