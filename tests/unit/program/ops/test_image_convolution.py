"""The op of program/ops/image_convolution.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, check_gradient, checks

rng = np.random.default_rng(0)


def convolved(inputs, attrs):
    """Image by image, spot by spot."""
    (x, _), (_, (heights,)), (_, (widths,)), weight = (inputs[slot] for slot in ("X", "ROW", "COLUMN", "W"))
    kernel, strides = (attrs["KernelH"], attrs["KernelW"]), (attrs["StrideH"], attrs["StrideW"])
    channels, results, begin = attrs["InputChannel"], [np.zeros((0, 1))], 0
    for height, width in zip(heights, widths):
        end = begin + channels * height * width
        image, begin = x[begin:end].reshape(channels, height, width), end
        room = [(size // 2, size) for size in kernel]
        padded = np.pad(image, [(0, 0), *room])
        spots = [[padded[:, i:i + kernel[0], j:j + kernel[1]].ravel() for j in range(0, width, strides[1])]
                 for i in range(0, height, strides[0])]
        if height and width:
            results.append((np.array(spots) @ weight.T).transpose(2, 0, 1).reshape(-1, 1))
    return {"Out": np.concatenate(results)}


def lengths_only(lengths):
    return np.zeros((sum(lengths), 1)), [lengths]


def conv(heights, widths, kernel, strides=(1, 1), channels=2, filters=3, note=""):
    sizes = [channels * height * width for height, width in zip(heights, widths)]
    spots = [-(-height // strides[0]) * -(-width // strides[1]) for height, width in zip(heights, widths)]
    made = Case("var_conv_2d", {
        "X": (rng.normal(size=(sum(sizes), 1)), [sizes]), "ROW": lengths_only(heights), "COLUMN": lengths_only(widths),
        "W": rng.normal(size=(filters, channels * kernel[0] * kernel[1]))},
        {"InputChannel": channels, "OutputChannel": filters, "KernelH": kernel[0], "KernelW": kernel[1],
         "StrideH": strides[0], "StrideW": strides[1]}, convolved, grads="X W",
        lods={"Out": [[filters * one for one in spots]]}, note=note)
    made.outputs = {"Out": [0], "Col": [0]}
    return made


CASES = [conv([3, 2], [4, 1], (3, 3)), conv([4, 3], [5, 2], (3, 2), (2, 3), note="strides"),
         conv([2, 0, 1], [3, 2, 0], (1, 3), channels=1, note="empty ones"),
         conv([2], [2], (5, 4), (1, 2), note="wider than the image")]
test_forward, test_gradient, test_device = checks(CASES)


def test_the_documented_example_has_its_lod():
    made = conv([5, 4], [6, 7], (3, 3))
    out, = Built(made).run(["Out_out_0"], return_numpy=False)
    assert np.array(out).shape == (174, 1) and out.recursive_sequence_lengths() == [[90, 84]]


@pytest.mark.parametrize("grads", ["X", "W"])
def test_one_gradient_alone_is_right(grads):
    made = conv([3, 2], [4, 1], (3, 3))
    made.grads = [grads]
    check_gradient(made)


def changed(**inputs):
    made = conv([3, 2], [4, 1], (3, 3))
    made.inputs.update(inputs)
    return made


@pytest.mark.parametrize("made, text", [
    (changed(W=np.ones((3, 9))), r"InputChannel x KernelH x KernelW\] = \[3, 18\], got \[3, 9\]"),
    (changed(ROW=lengths_only([3, 3])), r"image 1 of X has 4 numbers: expected 2 channels x 3 \(ROW\) x 1 \(COLUMN\)"),
    (changed(COLUMN=np.ones((5, 1))), "COLUMN is not a sequence"),
])
def test_what_does_not_fit_is_refused(made, text):
    with pytest.raises(ProgramError, match=text):
        Built(made).run(["Out_out_0"])
