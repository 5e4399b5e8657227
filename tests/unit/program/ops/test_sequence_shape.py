"""Ops of program/ops/sequence_shape.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, check_forward, checks

rng = np.random.default_rng(0)


def ragged(*lengths, wide=(2,)):
    return rng.normal(size=(sum(lengths[-1]), *wide)), list(lengths)


def pieces(value):
    return np.split(value[0], np.cumsum(value[1][-1])[:-1])


def padded(inputs, attrs):
    parts = pieces(inputs["X"])
    length = attrs.get("padded_length", -1)
    length = max(map(len, parts)) if length < 0 else length
    out = np.broadcast_to(inputs["PadValue"], (len(parts), length) + inputs["X"][0].shape[1:]).copy()
    for row, part in zip(out, parts):
        row[:len(part)] = part
    return {"Out": out, "Length": np.array([len(part) for part in parts])}


def unpadded(inputs, attrs):
    lengths = inputs["Length"].reshape(-1)
    return {"Out": np.concatenate([row[:length] for row, length in zip(inputs["X"], lengths)])}


def mask(inputs, attrs):
    x = inputs["X"]
    length = int(inputs["MaxLenTensor"][0]) if "MaxLenTensor" in inputs else attrs.get("maxlen", -1)
    length = x.max() if length < 0 else length
    out = np.zeros(x.shape + (length,))
    for index in np.ndindex(x.shape):
        out[index][:x[index]] = 1
    return {"Y": out}


CASES = [Case("sequence_pad", {"X": ragged(lengths, wide=wide), "PadValue": pad}, {"padded_length": length}, padded,
              grads="X", lods={"Out": []}, note=f"{lengths}{wide}to{length}")
         for lengths, length in (([3, 1, 4], -1), ([3, 0, 2], 5), ([2, 2], 2))
         for wide, pad in (((2,), np.array([0.5])), ((2, 2), rng.normal(size=(2, 2))))]
CASES += [Case("sequence_unpad", {"X": rng.normal(size=(3, 4, *wide)), "Length": np.array(lengths).reshape(shape)}, {},
               unpadded, grads="X", lods={"Out": [lengths]}, note=f"{lengths}{wide}")
          for lengths, shape, wide in (([3, 1, 4], (3,), (2,)), ([0, 4, 0], (3, 1), ()), ([1, 2, 3], (3,), (2, 2)))]
CASES += [Case("sequence_mask", {"X": x, **more}, {"maxlen": length, "out_dtype": dtype}, mask,
               note=f"{x.shape}{length}{dtype}")
          for x, more, length, dtype in (
              (np.array([3, 1, 0]), {}, 4, "int64"), (np.array([[3], [1]]), {}, 2, "float32"),
              (np.array([[3, 2], [1, 5]]), {}, -1, "bool"),
              (np.array([2, 1]), {"MaxLenTensor": np.array([3])}, -1, "int32"))]


def regrouped(inputs, attrs):
    return {"Out": inputs["X"][0].reshape(-1, attrs["new_dim"])}


CASES += [Case("sequence_reshape", {"X": ragged(*lengths, wide=(4,))}, {"new_dim": new}, regrouped, grads="X",
               lods={"Out": after}, note=f"{lengths}{new}")
          for lengths, new, after in (([[2, 1]], 2, [[4, 2]]), ([[2, 0, 4]], 8, [[1, 0, 2]]),
                                      ([[1, 1], [2, 4]], 8, [[1, 1], [1, 2]]))]


def same(inputs, attrs):
    x = inputs["X"]
    return {"Out": x[0] if isinstance(x, tuple) else x}


rows = rng.normal(size=(5, 2))
CASES += [
    Case("lod_reset", {"X": rows}, {"target_lod": [0, 2, 5]}, same, grads="X", lods={"Out": [[2, 3]]}, note="offsets"),
    Case("lod_reset", {"X": rows}, {"target_lod": [2, 3]}, same, grads="X", lods={"Out": [[2, 3]]}, note="lengths"),
    Case("lod_reset", {"X": (rows, [[4, 1]]), "Y": ragged([1, 1], [3, 2])}, {}, same, grads="X",
         lods={"Out": [[1, 1], [3, 2]]}, note="as-Y"),
    Case("lod_reset", {"X": (rows, [[4, 1]]), "Y": np.array([0, 1, 5])}, {}, same, grads="X", lods={"Out": [[1, 4]]},
         note="values-of-Y"),
    Case("lod_reset", {"X": (rows, [[2, 3]])}, {"target_lod": [1, 1, 1, 1, 1], "append": True}, same, grads="X",
         lods={"Out": [[2, 3], [1, 1, 1, 1, 1]]}, note="append"),
]

test_forward, test_gradient, test_device = checks(CASES)


def test_padding_shorter_than_the_longest_is_refused():
    case = Case("sequence_pad", {"X": ragged([3, 4]), "PadValue": np.zeros(1)}, {"padded_length": 3},
                {"Out": np.ones((1, 1, 1)), "Length": np.ones(1)})
    with pytest.raises(ProgramError, match="at least 4, the longest sequence, got 3"):
        check_forward(case)


def test_a_pad_value_of_another_shape_is_refused():
    case = Case("sequence_pad", {"X": ragged([3, 4]), "PadValue": np.zeros(3)}, {},
                {"Out": np.ones((1, 1, 1)), "Length": np.ones(1)})
    with pytest.raises(ProgramError, match=r"\[1\] or that of a row, \[2\], got \[3\]"):
        check_forward(case)


@pytest.mark.parametrize("lengths", [[1, 5], [1, -1], [1]])
def test_lengths_that_do_not_fit_are_refused(lengths):
    case = Case("sequence_unpad", {"X": rng.normal(size=(2, 4)), "Length": np.array(lengths)}, {}, {"Out": np.ones(1)})
    with pytest.raises(ProgramError, match="expected 2 lengths between 0 and 4"):
        check_forward(case)


def test_padding_and_unpadding_needs_no_interpreter():
    """The lengths that sequence_pad gives follow from the LoD, so they are known while planning."""
    case = Case("sequence_pad", {"X": ragged([3, 0, 2]), "PadValue": np.zeros(1)}, {}, padded)
    built = Built(case)
    block = built.program.global_block()
    block.append_op("sequence_unpad", {"X": ["Out_out_0"], "Length": ["Length_out_0"]}, {"Out": ["back"]})
    (back,) = built.run(["back"], return_numpy=False)
    np.testing.assert_array_equal(np.asarray(back), case.inputs["X"][0])
    assert back.recursive_sequence_lengths() == [[3, 0, 2]]


@pytest.mark.parametrize("target", [[0, 2, 4], [2, 2], [0, 4, 2, 5], []])
def test_a_lod_that_does_not_cover_the_rows_is_refused(target):
    case = Case("lod_reset", {"X": rows}, {"target_lod": target}, same)
    with pytest.raises(ProgramError, match="level 0 of the LoD"):
        check_forward(case)


def test_a_new_width_that_cuts_through_sequences_is_refused():
    case = Case("sequence_reshape", {"X": ragged([1, 3], wide=(4,))}, {"new_dim": 8}, regrouped)
    with pytest.raises(ProgramError, match="new_dim 8 does not divide"):
        check_forward(case)
