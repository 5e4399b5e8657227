"""The programs of the recipes, by public names only: files may move, these names stay.

Each function builds a loss into the default programs; ``batch`` makes the data of (worker, step), different for every
pair, so that nothing but the right sum in the right order gives the bits.
"""

import numpy as np

from fleet_mpi import fluid

layers, optimizer = fluid.layers, fluid.optimizer
_ROWS = 6
_IDS = 3000


def batch(program, worker, step):
    """What a worker is fed with at a step: those of these variables that the program has."""
    rng = np.random.default_rng([11, worker, step])
    rows = _ROWS + worker
    x = rng.normal(size=(rows, 13)).astype("float32")
    every = {"x": x, "y": x.sum(1, keepdims=True), "image": rng.normal(size=(rows, 3, 32, 32)).astype("float32"),
             "digit": rng.normal(size=(rows, 1, 28, 28)).astype("float32"),
             "label": rng.integers(0, 10, size=(rows, 1)),
             # Few ids come often, as words do: rows are met again, and twice in a batch.
             "ids": (rng.integers(0, 40, size=(rows, 4)) * (1 + rng.integers(0, 49, size=(rows, 4)))) % _IDS,
             "clicked": rng.integers(0, 2, size=(rows, 1)).astype("float32")}
    return {name: value for name, value in every.items() if program.global_block().has_var(name)}


def _error(prediction):
    return layers.mean(layers.square_error_cost(prediction, layers.data(name="y", shape=[1])))


def _classified(logits):
    label = layers.data(name="label", shape=[1], dtype="int64")
    return layers.mean(layers.softmax_with_cross_entropy(logits, label))


def dense():
    """Two layers, the first of 33,800 weights: several blocks of 8192."""
    return _error(layers.fc(layers.fc(layers.data(name="x", shape=[13]), 2600, act="tanh"), 1))


def rows():
    """An embedding that travels by rows, beside dense layers."""
    ids = layers.data(name="ids", shape=[4], dtype="int64")
    found = layers.embedding(layers.unsqueeze(ids, [2]), size=[_IDS, 10], is_sparse=True)
    return _error(layers.fc(layers.reshape(found, [-1, 40]), 1))


def normalised():
    """Convolution, batch normalisation and dropout."""
    features = layers.batch_norm(layers.conv2d(layers.data(name="digit", shape=[1, 28, 28]), 4, 5, stride=3),
                                 act="relu")
    return _classified(layers.fc(layers.dropout(features, 0.3), 10))


def lenet():
    """LeNet-5."""
    made = layers.data(name="digit", shape=[1, 28, 28])
    for filters in (20, 50):
        made = layers.pool2d(layers.conv2d(made, filters, 5, act="relu"), 2, "max", 2)
    return _classified(layers.fc(layers.fc(made, 500, act="relu"), 10))


def resnet18():
    """ResNet-18 for images of 32 x 32."""
    made = _convolved(layers.data(name="image", shape=[3, 32, 32]), 64, 1)
    for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        made = _block(_block(made, filters, stride), filters, 1)
    return _classified(layers.fc(layers.pool2d(made, pool_type="avg", global_pooling=True), 10))


def _block(x, filters, stride):
    inner = _convolved(_convolved(x, filters, stride), filters, 1, act=None)
    way = x if stride == 1 and x.shape[1] == filters else _convolved(x, filters, stride, size=1, act=None)
    return layers.relu(inner + way)


def _convolved(x, filters, stride, size=3, act="relu"):
    return layers.batch_norm(layers.conv2d(x, filters, size, stride, size // 2, bias_attr=False), act=act)


def wide_and_deep():
    """Linear weights and embeddings of the same ids, by rows, and three layers."""
    ids = layers.unsqueeze(layers.data(name="ids", shape=[4], dtype="int64"), [2])
    clicked, x = layers.data(name="clicked", shape=[1]), layers.data(name="x", shape=[13])
    wide = layers.reduce_sum(layers.embedding(ids, size=[_IDS, 1], is_sparse=True), 1)
    deep = layers.concat([layers.reshape(layers.embedding(ids, size=[_IDS, 8], is_sparse=True), [-1, 32]), x], 1)
    for size in (64, 32, 1):
        deep = layers.fc(deep, size, act="relu" if size > 1 else None)
    return layers.mean(layers.sigmoid_cross_entropy_with_logits(wide + deep, clicked))


def momentum():
    """Momentum with weight decay."""
    return optimizer.Momentum(0.05, 0.9, regularization=fluid.regularizer.L2Decay(1e-3))


def adam_clipped():
    """Adam behind a clip by the norm of all gradients."""
    return optimizer.Adam(0.01, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5))


def scheduled():
    """SGD whose rate decays in steps."""
    return optimizer.SGD(layers.exponential_decay(0.1, decay_steps=2, decay_rate=0.7, staircase=True))


def lamb():
    """LAMB, whose update needs norms over all shards of a variable."""
    return optimizer.Lamb(0.01)


def adagrad():
    """Adagrad."""
    return optimizer.Adagrad(0.05)
