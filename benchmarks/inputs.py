"""What every contender computes with: the same batches and the same initial values, as numpy arrays.

Knows no contender. Parameter names are those of the models; shapes are written down here apart from
the examples, so that a contender that builds another model is found out by its first loss.
"""

from typing import NamedTuple

import numpy as np

FEATURES = 13
SLOTS = 26
TABLE = (1_000_001, 10)
WIDTHS = (SLOTS * TABLE[1] + FEATURES, 400, 400, 400, 1)
CLASSES = 102
MLP_RATE = 0.01
BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}

# Several batches in turn: with one and the same the rows of the table would never leave the cache.
BATCHES = 8


class Conv(NamedTuple):
    """One convolution of a ResNet: square kernel, padding (kernel - 1) / 2, no bias."""

    name: str
    inputs: int
    outputs: int
    kernel: int
    stride: int
    size: int

    @property
    def out_size(self):
        """Height and width of the output."""
        return (self.size - 1) // self.stride + 1


def fit_a_line(batch):
    """(batches of (x, y), initial values) of the linear regression 13 -> 1."""
    rng = np.random.default_rng(1)
    batches = [(_normal(rng, (batch, FEATURES), 0.3), _normal(rng, (batch, 1), 4.5) + np.float32(22.5))
               for _ in range(BATCHES)]
    return batches, {"w": _normal(rng, (FEATURES, 1), 0.3), "b": np.zeros(1, np.float32)}


def wide_and_deep(batch, table=TABLE):
    """(batches of (dense, ids [batch, 26], label), initial values) of the present wide_and_deep."""
    rng = np.random.default_rng(2)
    batches = [(rng.random((batch, FEATURES), np.float32), rng.integers(0, table[0], (batch, SLOTS)),
                (rng.random((batch, 1)) < 0.3).astype(np.int64)) for _ in range(BATCHES)]
    values = {"wide_w": _normal(rng, (FEATURES, 1), FEATURES ** -0.5), "wide_b": np.zeros(1, np.float32),
              "table": rng.random(table, np.float32) * 2 - 1}
    for number, (wide, narrow) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        values[f"w{number}"] = _normal(rng, (wide, narrow), wide ** -0.5)
        values[f"b{number}"] = np.zeros(narrow, np.float32)
    return batches, values


def resnet(batch, layers, size):
    """(one batch of (images, label), initial values by the names of the model) of a ResNet."""
    rng = np.random.default_rng(3)
    batches = [(_normal(rng, (batch, 3, size, size), 60.0), rng.integers(0, CLASSES, (batch, 1)))]
    values = {}
    for conv in convolutions(layers, size):
        values[conv.name + "_weights"] = _normal(
            rng, (conv.outputs, conv.inputs, conv.kernel, conv.kernel), (2 / (conv.kernel ** 2 * conv.inputs)) ** 0.5)
        norm = norm_of(conv.name)
        values[norm + "_scale"] = np.ones(conv.outputs, np.float32)
        values[norm + "_offset"] = np.zeros(conv.outputs, np.float32)
    last = conv.outputs
    values["fc_0.w_0"] = ((rng.random((last, CLASSES), np.float32) * 2 - 1) * np.float32(last ** -0.5))
    values["fc_0.b_0"] = np.zeros(CLASSES, np.float32)
    return batches, values


def mlp(width, layers, batch, rank):
    """(a rank's batches of (x, label), initial values) of layers as wide as the input, with a class for each output."""
    rng = np.random.default_rng(4)
    values = {}
    for number in range(layers):
        values[f"w{number}"] = _normal(rng, (width, width), width ** -0.5)
        values[f"b{number}"] = np.zeros(width, np.float32)
    rng = np.random.default_rng([5, rank])
    batches = [(_normal(rng, (batch, width), 1.0), rng.integers(0, width, (batch, 1))) for _ in range(BATCHES)]
    return batches, values


def norm_of(conv_name):
    """The name of the batch norm behind a convolution."""
    return "bn_conv1" if conv_name == "conv1" else "bn" + conv_name.removeprefix("res")


def convolutions(layers, size):
    """Every convolution of a ResNet, in the order of the model; the shortcut's comes first in its block."""
    yield Conv("conv1", 3, 64, 7, 2, size)
    size, inputs = ((size + 1) // 2 + 1) // 2, 64
    for stage, count in enumerate(BLOCKS[layers]):
        for block in range(count):
            stride = 2 if block == 0 and stage > 0 else 1
            width = 64 << stage
            made = list(_block(f"res{stage + 2}{'abcdefgh'[block]}", inputs, width, stride, size, layers >= 50))
            yield from made
            inputs, size = made[-1].outputs, made[-1].out_size


def _block(name, inputs, width, stride, size, bottleneck):
    outputs = width * 4 if bottleneck else width
    after = (size - 1) // stride + 1
    if name.endswith("a"):
        yield Conv(name + "_branch1", inputs, outputs, 1, stride, size)
    if bottleneck:
        yield Conv(name + "_branch2a", inputs, width, 1, 1, size)
        yield Conv(name + "_branch2b", width, width, 3, stride, size)
        yield Conv(name + "_branch2c", width, outputs, 1, 1, after)
    else:
        yield Conv(name + "_branch2a", inputs, width, 3, stride, size)
        yield Conv(name + "_branch2b", width, width, 3, 1, after)


def _normal(rng, shape, deviation):
    return rng.standard_normal(shape, np.float32) * np.float32(deviation)
