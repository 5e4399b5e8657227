"""Ops of program/ops/matching.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, check_gradient, checks

rng = np.random.default_rng(0)


def parts(array, lengths):
    return np.split(array, np.cumsum(lengths)[:-1])


def matched(inputs, attrs):
    """Pair by pair, channel by channel."""
    (x, (lengths,)), (y, (others,)), weight = inputs["X"], inputs["Y"], inputs["W"]
    images = [np.stack([left @ weight[:, t] @ right.T for t in range(weight.shape[1])])
              for left, right in zip(parts(x, lengths), parts(y, others))]
    return {"Out": np.concatenate([image.reshape(-1, 1) for image in images]),
            "Tmp": np.stack([x @ weight[:, t] for t in range(weight.shape[1])], axis=1).reshape(-1, 1)}


def match(lengths, others, channels, note=""):
    sizes = [channels * one * other for one, other in zip(lengths, others)]
    return Case("match_matrix_tensor", {
        "X": (rng.normal(size=(sum(lengths), 3)), [lengths]), "Y": (rng.normal(size=(sum(others), 3)), [others]),
        "W": rng.normal(size=(3, channels, 3))}, {"dim_t": channels}, matched, grads="X Y W", lods={"Out": [sizes]},
        note=note)


def pooled(inputs, attrs):
    """Image by image, row by row."""
    (x, _), (_, (heights,)), (_, (widths,)) = inputs["X"], inputs["ROW"], inputs["COLUMN"]
    rows, topks, channels = [], attrs["topks"], attrs["channel_num"]
    sizes = [channels * height * width for height, width in zip(heights, widths)]
    for part, height, width in zip(parts(x, sizes), heights, widths):
        for lines in part.reshape(channels, height, width).swapaxes(0, 1):
            ordered = [sorted(line, reverse=True) for line in lines.tolist()]
            rows.append([sum(line[:top]) / top for line in ordered for top in topks])
    return {"Out": np.array(rows)}


def lengths_only(lengths):
    return np.zeros((sum(lengths), 1)), [lengths]


def pool(heights, widths, topks, channels=2, note=""):
    sizes = [channels * height * width for height, width in zip(heights, widths)]
    x = rng.permutation(sum(sizes)).reshape(-1, 1) * 0.1  # far apart: no difference makes another the largest
    made = Case("sequence_topk_avg_pooling", {"X": (x, [sizes]), "ROW": lengths_only(heights),
                                              "COLUMN": lengths_only(widths)},
                {"topks": topks, "channel_num": channels}, pooled, grads="X", lods={"Out": [heights]}, note=note)
    count = sum(heights) * channels * topks[-1]
    made.expect = lambda inputs, attrs: {**pooled(inputs, attrs), "pos": places(inputs, attrs).reshape(count)}
    return made


def places(inputs, attrs):
    """As ``pooled``, but where the largest stand."""
    (x, _), (_, (heights,)), (_, (widths,)) = inputs["X"], inputs["ROW"], inputs["COLUMN"]
    found, channels, most = [], attrs["channel_num"], attrs["topks"][-1]
    sizes = [channels * height * width for height, width in zip(heights, widths)]
    for part, height, width in zip(parts(x, sizes), heights, widths):
        for lines in part.reshape(channels, height, width).swapaxes(0, 1):
            for line in lines:
                order = np.argsort(-line, kind="stable")[:most].tolist()
                found.append(order + [-1] * (most - len(order)))
    return np.array(found, np.int32)


CASES = [match([2, 3], [3, 1], 2), match([2, 1, 0, 3], [1, 0, 2, 2], 1, note="empty ones"),
         pool([2, 3], [4, 2], [1, 3]), pool([1, 2, 2], [3, 0, 1], [1, 2, 5], channels=1, note="narrow"),
         pool([0, 2], [4, 2], [2], note="no rows")]
test_forward, test_gradient, test_device = checks(CASES)


def test_the_documented_example_of_a_match_has_its_lod():
    x = np.array([[0.3, 0.1], [0.2, 0.3], [0.5, 0.6], [0.7, 0.1], [0.3, 0.4]])
    y = np.array([[0.1, 0.2], [0.3, 0.7], [0.9, 0.2], [0.4, 0.1]])
    made = Case("match_matrix_tensor", {"X": (x, [[2, 3]]), "Y": (y, [[3, 1]]), "W": np.ones((2, 2, 2))}, {"dim_t": 2},
                outputs={"Out": [0], "Tmp": [0]})
    out, = Built(made).run(["Out_out_0"], return_numpy=False)
    assert np.array(out).shape == (18, 1) and out.recursive_sequence_lengths() == [[12, 6]]


def test_the_documented_example_of_a_pool_has_its_shape():
    made = Case("sequence_topk_avg_pooling", {
        "X": (rng.normal(size=(116, 1)), [[60, 56]]), "ROW": lengths_only([5, 4]), "COLUMN": lengths_only([6, 7])},
        {"topks": [1, 3, 5], "channel_num": 2}, outputs={"Out": [0], "pos": [0]})
    out, = Built(made).run(["Out_out_0"], return_numpy=False)
    assert np.array(out).shape == (9, 6) and out.recursive_sequence_lengths() == [[5, 4]]


@pytest.mark.parametrize("grads", ["X", "Y", "W"])
def test_one_gradient_alone_is_right(grads):
    made = match([2, 3], [3, 1], 2)
    made.grads = [grads]
    check_gradient(made)


def changed(made, **inputs):
    made.inputs.update(inputs)
    made.outputs = {"Out": [0], "Tmp" if "W" in made.inputs else "pos": [0]}
    return made


def with_attrs(made, **attrs):
    made.attrs.update(attrs)
    return changed(made)


@pytest.mark.parametrize("made, text", [
    (changed(match([2], [3], 1), W=np.ones((3, 2, 3))), r"W \[columns of X, dim_t, columns of Y\] = \[3, 1, 3\]"),
    (changed(match([2], [3], 1), X=np.ones((2, 3))), "X is not a sequence"),
    (changed(match([2], [3], 1), X=(np.ones((2, 3)), [[1], [2]])), "X: expected one LoD level, got 2"),
    (changed(match([2], [3], 1), Y=(np.ones((3, 3)), [[1, 2]])), "as many sequences in X and Y, got 1 and 2"),
    (changed(pool([2], [3], [1]), ROW=lengths_only([3])), "image 0 of X has 12 numbers: expected 2 channels x 3"),
    (changed(pool([2], [3], [1]), COLUMN=lengths_only([2, 1])), "in X, ROW and COLUMN, got 1, 1 and 2"),
    (changed(pool([2], [3], [1]), X=(np.ones((12, 2)), [[12]])), r"X \[numbers, 1\], got \[12, 2\]"),
    (with_attrs(pool([2], [3], [1]), topks=[3, 1]), "topks in ascending order"),
    (with_attrs(pool([2], [3], [1]), topks=[]), "topks in ascending order"),
])
def test_what_does_not_fit_is_refused(made, text):
    with pytest.raises(ProgramError, match=text):
        Built(made).run(["Out_out_0"])
