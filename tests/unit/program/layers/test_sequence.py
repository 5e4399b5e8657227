"""Layers over sequences: parameters, attributes, and what they give when run."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, Tensor
from fleet_mpi.program.layers import sequence as layers
from fleet_mpi.program.layers.data import data

X = np.arange(12, dtype=np.float32).reshape(6, 2)
LENGTHS = [[1, 3, 2]]


def ragged(array=X, lengths=LENGTHS):
    tensor = Tensor(np.asarray(array))
    tensor.set_recursive_sequence_lengths(lengths)
    return tensor


def variable(name="x", shape=(2,), dtype="float32", lod_level=1):
    return data(name, list(shape), dtype=dtype, lod_level=lod_level)


def run(programs, fetches, **feed):
    main, startup = programs
    scope, executor = Scope(), Executor()
    executor.run(startup, scope=scope)
    return executor.run(main, feed={"x": ragged(), **feed}, fetch_list=fetches, scope=scope, return_numpy=False)


@pytest.mark.parametrize("pool, expected", [("sum", [1, 15, 20]), ("Average", [1, 5, 10]), ("max", [1, 7, 11]),
                                            ("first", [1, 3, 9]), ("last", [1, 7, 11]),
                                            ("sqrt", [1, 15 / 3 ** 0.5, 20 / 2 ** 0.5])])
def test_pools_by_name(programs, pool, expected):
    (out,) = run(programs, [layers.sequence_pool(variable(), pool)])
    np.testing.assert_allclose(np.asarray(out)[:, 1], expected, rtol=1e-6)


def test_first_and_last_step(programs):
    x = variable()
    first, last = run(programs, [layers.sequence_first_step(x), layers.sequence_last_step(x)])
    np.testing.assert_array_equal(first, X[[0, 1, 4]])
    np.testing.assert_array_equal(last, X[[0, 3, 5]])


def test_convolution_is_centred_and_has_a_bias(programs):
    main, startup = programs
    out = layers.sequence_conv(variable(), num_filters=5, filter_size=3, act="relu")
    op = main.global_block().ops[0]
    assert (op.attr("contextStart"), op.attr("contextLength"), op.attr("contextStride")) == (-1, 3, 1)
    assert {param.name: param.shape for param in main.all_parameters()} == {
        "sequence_conv_0.w_0": (6, 5), "sequence_conv_0.b_0": (5,)}
    assert [op.type for op in main.global_block().ops] == ["sequence_conv", "elementwise_add", "relu"]
    assert out.lod_level == 1 and out.shape == (-1, 5)
    assert run(programs, [out])[0].recursive_sequence_lengths() == LENGTHS


def test_convolution_from_a_chosen_row_without_bias(programs):
    main, _ = programs
    layers.sequence_conv(variable(), 4, 2, padding_start=0, bias_attr=False)
    assert main.global_block().ops[0].attr("contextStart") == 0
    assert [param.name for param in main.all_parameters()] == ["sequence_conv_0.w_0"]


def test_expanding_joining_and_turning(programs):
    x = variable()
    last = layers.sequence_last_step(x)
    fetches = [layers.sequence_expand(last, x), layers.sequence_expand_as(last, x), layers.sequence_concat([x, x]),
               layers.sequence_reverse(x), layers.sequence_reshape(x, 1)]
    expand, expand_as, concat, reverse, reshape = run(programs, fetches)
    for out in (expand, expand_as):
        np.testing.assert_array_equal(out, X[[0, 3, 3, 3, 5, 5]])
    assert expand_as.recursive_sequence_lengths() == LENGTHS
    np.testing.assert_array_equal(concat, X[[0, 0, 1, 2, 3, 1, 2, 3, 4, 5, 4, 5]])
    np.testing.assert_array_equal(reverse, X[[0, 3, 2, 1, 5, 4]])
    np.testing.assert_array_equal(reshape, X.reshape(-1, 1))


def test_padding_masks_and_slices(programs):
    x, pad = variable(), data("pad", [1], append_batch_size=False)
    offset, length = (variable(name, (1,), "int64", 0) for name in ("offset", "length"))
    padded, lengths = layers.sequence_pad(x, pad, maxlen=4)
    fetches = [padded, lengths, layers.sequence_unpad(padded, lengths), layers.sequence_mask(lengths),
               layers.sequence_mask(lengths, 4, "float32"), layers.sequence_slice(x, offset, length)]
    padded, lengths, back, mask, mask_of_4, cut = run(
        programs, fetches, pad=np.full(1, -1, np.float32), offset=np.array([[0], [1], [1]]),
        length=np.array([[1], [2], [0]]))
    assert np.asarray(lengths).tolist() == [1, 3, 2]
    np.testing.assert_array_equal(np.asarray(padded)[:, :, 0], [[0, -1, -1, -1], [2, 4, 6, -1], [8, 10, -1, -1]])
    np.testing.assert_array_equal(back, X)
    np.testing.assert_array_equal(mask, [[1, 0, 0], [1, 1, 1], [1, 1, 0]])
    assert np.asarray(mask).dtype == np.int64 and np.asarray(mask_of_4).dtype == np.float32
    assert np.asarray(mask_of_4).shape == (3, 4)
    np.testing.assert_array_equal(cut, X[[0, 2, 3]])


def test_a_mask_may_take_its_length_from_a_variable(programs):
    variable()
    x, length = (variable(name, (), "int64", 0) for name in ("n", "maxlen"))
    (out,) = run(programs, [layers.sequence_mask(x, length)], n=np.array([1, 2]), maxlen=np.array([3]))
    np.testing.assert_array_equal(out, [[1, 0, 0], [1, 1, 0]])


def test_ids_in_windows_and_scattered(programs):
    variable()
    words, start, updates = variable("words", (1,), "int64"), variable("start", (5,), lod_level=0), variable("u", (1,))
    fetches = [layers.sequence_enumerate(words, 2, pad_value=9), layers.sequence_scatter(start, words, updates)]
    windows, scattered = run(programs, fetches, words=ragged(np.array([[0], [2], [2], [4], [1], [3]])),
                             start=np.zeros((3, 5), np.float32), u=ragged(np.ones((6, 1), np.float32)))
    assert np.asarray(windows).tolist() == [[0, 9], [2, 2], [2, 4], [4, 9], [1, 3], [3, 9]]
    assert np.asarray(scattered).tolist() == [[1, 0, 0, 0, 0], [0, 0, 2, 0, 1], [0, 1, 0, 1, 0]]


def test_softmax_sums_to_one_in_each_sequence(programs):
    numbers = variable("numbers", (1,))
    variable()
    (out,) = run(programs, [layers.sequence_softmax(numbers)], numbers=ragged(X[:, :1]))
    sums = [part.sum() for part in np.split(np.asarray(out), [1, 4])]
    np.testing.assert_allclose(sums, 1, rtol=1e-6)


def test_lod_may_be_replaced_and_deepened(programs):
    x, y = variable(), variable("y", (1,))
    fetches = [layers.lod_reset(x, y), layers.lod_reset(x, target_lod=[0, 4, 6]),
               layers.lod_reset(x, target_lod=[4, 2]), layers.lod_append(x, [1] * 6)]
    found = run(programs, fetches, y=ragged(np.zeros((6, 1), np.float32), [[6]]))
    assert [one.recursive_sequence_lengths() for one in found] == [[[6]], [[4, 2]], [[4, 2]], [[1, 3, 2], [1] * 6]]
    assert fetches[3].lod_level == 2


def test_resetting_a_lod_to_nothing_is_refused(programs):
    with pytest.raises(UsageError, match="y or target_lod"):
        layers.lod_reset(variable())
