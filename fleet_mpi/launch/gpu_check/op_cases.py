"""A few dozen ops as people use them, one table: name, inputs, and the layers that make the outputs.

Each stands for a family: what it computes with is the same kernel, product or scatter. The test suite has every op; it
runs from a checkout (``slurm/gpu_acceptance.sbatch``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fleet_mpi import fluid

if TYPE_CHECKING:
    from collections.abc import Callable

layers = fluid.layers
_rng = np.random.default_rng(20)


class Case(NamedTuple):
    """An op with inputs: arrays, or (array, lengths) of sequences, in the order that ``build`` takes them.

    ``outputs``: how many it returns.
    """

    name: str
    inputs: dict[str, Any]
    build: Callable[..., Any]
    has_gradient: bool = True
    outputs: int = 1


def _floats(*shape: int) -> np.ndarray:
    return _rng.normal(size=shape).astype("float32")


def _positive(*shape: int) -> np.ndarray:
    return _rng.uniform(0.5, 2.0, size=shape).astype("float32")


def _ids(high: int, *shape: int) -> np.ndarray:
    return _rng.integers(0, high, size=shape).astype("int64")


def _sequences(width: int) -> tuple[np.ndarray, list[int]]:
    """Three sequences of 4, 1 and 3 rows."""
    return _floats(8, width), [4, 1, 3]


def _of_one(name: str, function: Callable[..., Any], made: Callable[..., np.ndarray] = _floats,
            shape: tuple[int, ...] = (6, 33), **more: Any) -> Case:
    """An op of one input."""
    return Case(name, {"x": made(*shape)}, function, **more)


_IMAGES, _MAPS = (2, 3, 11, 10), (4, 6, 7, 5)

CASES = (
    # elementwise
    Case("add, broadcast", {"x": _floats(4, 5, 6), "y": _floats(5)}, lambda x, y: layers.elementwise_add(x, y, axis=1)),
    Case("multiply", {"x": _floats(7, 9), "y": _floats(7, 9)}, lambda x, y: x * y),
    Case("divide", {"x": _floats(7, 9), "y": _positive(7, 9)}, lambda x, y: x / y),
    Case("maximum", {"x": _floats(7, 9), "y": _floats(7, 9)}, layers.elementwise_max),
    _of_one("scale and clip", lambda x: layers.clip(layers.scale(x, 2.0, bias=0.5), -1.0, 1.0)),
    _of_one("relu", layers.relu), _of_one("sigmoid", layers.sigmoid), _of_one("tanh", layers.tanh),
    _of_one("gelu", layers.gelu), _of_one("exp", layers.exp), _of_one("log", layers.log, _positive),
    _of_one("sqrt", layers.sqrt, _positive), _of_one("swish", layers.swish),
    _of_one("compare and where", lambda x: layers.cast(x > layers.zeros_like(x), "float32") * x),
    # reductions, order
    _of_one("sum", lambda x: layers.reduce_sum(x, dim=1), shape=(5, 300)),
    _of_one("mean", lambda x: layers.reduce_mean(x, dim=0), shape=(300, 5)),
    _of_one("max", lambda x: layers.reduce_max(x, dim=1)), _of_one("cumsum", lambda x: layers.cumsum(x, axis=1)),
    _of_one("top k", lambda x: layers.topk(x, k=3), outputs=2),
    _of_one("argmax", lambda x: layers.argmax(x, axis=1), has_gradient=False),
    _of_one("argsort", lambda x: layers.argsort(x, axis=1), outputs=2),
    # shapes
    _of_one("transpose", lambda x: layers.transpose(x, [2, 0, 1]), shape=(4, 5, 6)),
    _of_one("reshape, slice",
            lambda x: layers.slice(layers.reshape(x, [9, 22]), axes=[0, 1], starts=[1, 3], ends=[8, 20])),
    Case("concat, split", {"x": _floats(4, 6), "y": _floats(4, 2)},
         lambda x, y: layers.split(layers.concat([x, y], axis=1), 2, dim=1), outputs=2),
    Case("gather", {"x": _floats(9, 4), "ids": _ids(9, 12)}, lambda x, ids: layers.gather(x, ids)),
    Case("scatter, sums", {"x": _floats(9, 4), "ids": _ids(9, 12), "y": _floats(12, 4)},
         lambda x, ids, y: layers.scatter(x, ids, y, overwrite=False)),
    _of_one("pad, expand", lambda x: layers.expand(layers.pad(x, [1, 0, 0, 2]), [2, 1])),
    # products
    Case("matmul", {"x": _floats(33, 65), "y": _floats(65, 17)}, layers.matmul),
    Case("matmul, batched, transposed", {"x": _floats(2, 3, 8, 9), "y": _floats(2, 3, 7, 9)},
         lambda x, y: layers.matmul(x, y, transpose_y=True)),
    _of_one("fully connected", lambda x: layers.fc(x, 20, act="relu")),
    # images
    _of_one("conv2d 3x3", lambda x: layers.conv2d(x, 8, 3, padding=1), shape=_IMAGES),
    _of_one("conv2d 7x7, stride 2", lambda x: layers.conv2d(x, 4, 7, stride=2, padding=3), shape=_IMAGES),
    _of_one("conv2d 1x1, stride 2", lambda x: layers.conv2d(x, 5, 1, stride=2), shape=_MAPS),
    _of_one("conv2d, depthwise", lambda x: layers.conv2d(x, 6, 3, padding=1, groups=6), shape=_MAPS),
    _of_one("conv2d, transposed", lambda x: layers.conv2d_transpose(x, 4, filter_size=3, stride=2), shape=_MAPS),
    _of_one("max pool", lambda x: layers.pool2d(x, 3, "max", 2, 1), shape=_IMAGES),
    _of_one("average pool", lambda x: layers.pool2d(x, 2, "avg", 2), shape=_IMAGES),
    _of_one("global pool", lambda x: layers.pool2d(x, pool_type="avg", global_pooling=True), shape=_MAPS),
    _of_one("resize", lambda x: layers.resize_bilinear(x, out_shape=[9, 8]), shape=_MAPS),
    # normalization, dropout
    _of_one("batch norm, relu", lambda x: layers.batch_norm(x, act="relu"), shape=_MAPS),
    _of_one("layer norm", layers.layer_norm), _of_one("group norm", lambda x: layers.group_norm(x, 2), shape=_MAPS),
    _of_one("dropout", lambda x: layers.dropout(x, 0.4, seed=3)),
    # classes, embeddings
    _of_one("softmax", layers.softmax),
    Case("softmax with cross entropy", {"x": _floats(6, 10), "label": _ids(10, 6, 1)},
         layers.softmax_with_cross_entropy),
    Case("sigmoid cross entropy", {"x": _floats(6, 10), "y": _positive(6, 10)},
         layers.sigmoid_cross_entropy_with_logits),
    Case("accuracy", {"x": _positive(6, 10), "label": _ids(10, 6, 1)}, lambda x, label: layers.accuracy(x, label, 2),
         has_gradient=False),
    Case("one hot", {"ids": _ids(7, 5, 1)}, lambda ids: layers.one_hot(ids, 7), has_gradient=False),
    Case("embedding", {"ids": _ids(11, 40)}, lambda ids: fluid.embedding(ids, [11, 5])),
    # sequences
    Case("sequence sum", {"x": _sequences(5)}, lambda x: layers.sequence_pool(x, "sum")),
    Case("sequence max", {"x": _sequences(5)}, lambda x: layers.sequence_pool(x, "max")),
    Case("sequence softmax", {"x": _sequences(1)}, layers.sequence_softmax),
    Case("LSTM", {"x": _sequences(12)}, lambda x: layers.dynamic_lstm(x, 12, use_peepholes=False)[0]),
)
