"""The cells of the table of exactness: small models, each with something that a distributed step might get wrong.

A cell is built from scratch wherever it is trained: in one process, over loopback, in every rank. ``batch`` makes the
data of (worker, step), different for every pair, so that nothing but the right sum in the right order gives the bits.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import fleet_mpi.fluid as fluid
from fleet_mpi import paddle
from tests.exact import recurrent_cells

STEPS = 3
layers, optimizer, clip = fluid.layers, fluid.optimizer, fluid.clip
L1, L2 = fluid.regularizer.L1Decay, fluid.regularizer.L2Decay


class Cell(NamedTuple):
    """One line of the table. ``build()`` gives the loss; ``learn()`` the optimizer; ``ends`` {worker: its last
    step}."""

    name: str
    build: Callable
    learn: Callable
    ends: dict = {}
    steps: int = STEPS

    def has_data(self, worker, step):
        """Whether a worker has a batch for this step."""
        return step < self.ends.get(worker, self.steps)


class Built(NamedTuple):
    """A cell's programs and what a training loop needs."""

    main: object
    startup: object
    loss: object
    scheduler: object


def built(cell):
    """Build a cell into the default programs."""
    loss, made = cell.build(), cell.learn()
    made.minimize(loss)
    rate = made.learning_rate.given
    return Built(fluid.default_main_program(), fluid.default_startup_program(), loss,
                 rate if isinstance(rate, paddle.optimizer.lr.LRScheduler) else None)


def batch(worker, step, rows=6):
    """What worker ``worker`` is fed with at a step."""
    rng = np.random.default_rng([7, worker, step])
    x = rng.normal(size=(rows + worker, 13)).astype("float32")
    return {"x": x, "y": x.sum(1, keepdims=True), "image": rng.normal(size=(rows + worker, 1, 8, 8)).astype("float32"),
            "ids": rng.integers(0, 40, size=(rows + worker, 4)) * (1 + rng.integers(0, 49, size=(rows + worker, 4)))}


def feed_of(program, worker, step):
    """The part of a batch that a program takes."""
    return {name: value for name, value in batch(worker, step).items() if program.global_block().has_var(name)}


# ---------------------------------------------------------------------- models

def _error(prediction):
    y = layers.data(name="y", shape=[1])
    return layers.mean(layers.square_error_cost(prediction, y))


def dense(**first):
    """Two layers, the first of 33,800 weights: up to four blocks."""
    x = layers.data(name="x", shape=[13])
    return _error(layers.fc(layers.fc(x, 2600, act="tanh", param_attr=fluid.ParamAttr(**first)), 1))


def image():
    """Convolution, batch normalisation and dropout, then a layer of 17,280 weights."""
    x = layers.data(name="image", shape=[1, 8, 8])
    features = layers.batch_norm(layers.conv2d(x, 4, 3), act="relu")
    return _error(layers.fc(layers.fc(layers.dropout(features, 0.3), 120, act="relu"), 1))


def rows(**table):
    """An embedding that travels by rows, 20,000 numbers, beside dense layers."""
    ids = layers.data(name="ids", shape=[4], dtype="int64")
    found = layers.embedding(layers.unsqueeze(ids, [2]), size=[2000, 10], is_sparse=True,
                             param_attr=fluid.ParamAttr(name="table", **table))
    return _error(layers.fc(layers.reshape(found, [-1, 40]), 1))


def sampled(loss, **options):
    """A loss over 2000 classes that chooses rows of its weight itself, drawn ones or a path."""
    ids, x = layers.data(name="ids", shape=[4], dtype="int64"), layers.data(name="x", shape=[13])
    label = layers.slice(ids, [1], [0], [1])
    return layers.mean(loss(layers.fc(x, 10, act="tanh"), label, 2000, is_sparse=True, param_attr="classes", **options))


def frozen():
    """Behind a drawn layer that is not trained: all workers must have drawn the same."""
    x = layers.data(name="x", shape=[13])
    fixed = fluid.ParamAttr(initializer=fluid.initializer.Normal(), trainable=False)
    return _error(layers.fc(layers.fc(x, 20, act="tanh", param_attr=fixed, bias_attr=False), 1))


def shared():
    """Parameters that several layers use, one through a reshape: gradients that are sums, and views of others."""
    x = layers.data(name="x", shape=[13])
    weight = layers.create_parameter([169], "float32", name="weight")
    square = layers.reshape(weight, [13, 13])
    twice = layers.matmul(layers.tanh(layers.matmul(x, square)), square)
    shift = layers.create_parameter([1], "float32", name="shift")
    return layers.elementwise_add(_error(layers.fc(twice, 1, bias_attr=False)), layers.square(shift + 0.5))


def double():
    """float64 beside float32."""
    x = layers.cast(layers.data(name="x", shape=[13]), "float64")
    weight = layers.create_parameter([13, 2600], "float64", name="weight")
    return _error(layers.fc(layers.cast(layers.matmul(x, weight), "float32"), 1))


def by_hand():
    """A schedule as scripts put it together: conditions in its own guard, a constant from outside of it."""
    step = layers.learning_rate_scheduler._decay_step_counter()
    rate = layers.create_global_var(shape=[1], value=0.0, dtype="float32", persistable=True, name="rate")
    warm = layers.fill_constant(shape=[1], dtype="float32", value=2.0)
    with fluid.default_main_program()._lr_schedule_guard():
        with layers.Switch() as switch:
            with switch.case(step < warm):
                layers.assign(step * 0.05, rate)
            with switch.default():
                layers.assign(0.1 / step, rate)
    return rate


class Averaged(NamedTuple):
    """An optimizer whose parameters are averaged beside the training."""

    inner: object

    @property
    def learning_rate(self):
        """The inner one's."""
        return self.inner.learning_rate

    def minimize(self, loss):
        """As scripts do it: the averages follow the update."""
        self.inner.minimize(loss)
        optimizer.ExponentialMovingAverage(0.9).update()


# ---------------------------------------------------------------------- the table

def _learns(kind, *args, **options):
    return lambda: getattr(optimizer, kind)(*args, **options)


RULES = {
    "sgd": _learns("SGD", 0.1),
    "momentum": _learns("Momentum", 0.1, 0.9),
    "nesterov": _learns("Momentum", 0.1, 0.9, use_nesterov=True),
    "lars_momentum": _learns("LarsMomentum", 0.1, 0.9),
    "adagrad": _learns("Adagrad", 0.1),
    "decayed_adagrad": _learns("DecayedAdagrad", 0.1),
    "adam": _learns("Adam", 0.01),
    "adamw": lambda: paddle.optimizer.AdamW(0.01, weight_decay=0.1),
    "adamax": _learns("Adamax", 0.01),
    "adadelta": _learns("Adadelta", 1.0),
    "rmsprop": _learns("RMSProp", 0.01),
    "rmsprop, centered": _learns("RMSProp", 0.01, momentum=0.9, centered=True),
    "ftrl": _learns("Ftrl", 0.1, l1=0.001, l2=0.001),
    "lamb": _learns("Lamb", 0.01),
    "dpsgd": _learns("Dpsgd", 0.1, clip=0.05, batch_size=4.0, sigma=0.1),
}
CLIPS = {"by value": lambda: clip.GradientClipByValue(0.01), "by norm": lambda: clip.GradientClipByNorm(0.05),
         "by global norm": lambda: clip.GradientClipByGlobalNorm(0.1)}
SCHEDULES = {
    "exponential": lambda: layers.exponential_decay(0.1, 2, 0.5),
    "natural exp": lambda: layers.natural_exp_decay(0.1, 2, 0.5, staircase=True),
    "inverse time": lambda: layers.inverse_time_decay(0.1, 2, 0.5),
    "polynomial": lambda: layers.polynomial_decay(0.1, 2, 0.01, cycle=True),
    "piecewise": lambda: layers.piecewise_decay([1, 2], [0.1, 0.05, 0.01]),
    "noam": lambda: layers.noam_decay(64, 2),
    "cosine": lambda: layers.cosine_decay(0.1, 1, 4),
    "warm-up": lambda: layers.linear_lr_warmup(layers.exponential_decay(0.1, 2, 0.5), 2, 0.0, 0.1),
    "by hand": by_hand,
    "of plain ops": lambda: layers.scale(layers.cast(layers.autoincreased_step_counter(), "float32"), 0.02),
    "2.x warm-up": lambda: paddle.optimizer.lr.LinearWarmup(0.1, 2, 0.0, 0.1),
}


def _table():
    for name, learn in RULES.items():
        yield Cell(name, dense, learn)
    for name, learn in RULES.items():
        yield Cell(f"rows, {name}", rows, learn)
    yield Cell("L2", dense, _learns("Adam", 0.01, regularization=L2(0.1)))
    yield Cell("L1, own rate", lambda: dense(regularizer=L1(0.1), learning_rate=0.3),
               _learns("Momentum", 0.1, 0.9, regularization=L2(0.01)))
    yield Cell("rows, L2", rows, _learns("SGD", 0.1, regularization=L2(0.1)))
    yield Cell("rows, L1", lambda: rows(regularizer=L1(0.1), learning_rate=0.5), _learns("Adam", 0.01))
    for name, bound in CLIPS.items():
        yield Cell(f"clip {name}", dense, lambda bound=bound: optimizer.Adam(0.01, grad_clip=bound()))
        yield Cell(f"rows, clip {name}", rows, lambda bound=bound: optimizer.SGD(0.5, grad_clip=bound()))
    yield Cell("global norm and L1", lambda: rows(regularizer=L1(0.1)), lambda: optimizer.Lamb(
        0.1, regularization=L2(0.1), grad_clip=clip.GradientClipByGlobalNorm(0.2)))
    for name, rate in SCHEDULES.items():
        yield Cell(f"schedule {name}", dense, lambda rate=rate: optimizer.SGD(rate()), steps=4)
    yield Cell("own rate of a schedule", lambda: dense(learning_rate=0.3),
               lambda: optimizer.Adam(layers.exponential_decay(0.1, 2, 0.5)), steps=4)
    for name, build in (("", dense), ("rows, ", rows)):
        yield Cell(f"{name}constant variables as betas", build, lambda: optimizer.Adam(
            0.01, layers.create_global_var([1], 0.8, "float32", persistable=True),
            layers.fill_constant([1], "float32", 0.95)))
    yield Cell("frozen layer", frozen, RULES["adam"])
    yield Cell("shared parameters", shared, RULES["momentum"])
    yield Cell("float64", double, RULES["adam"])
    yield Cell("float64, norms", double, RULES["lamb"])
    yield Cell("moving averages", dense, lambda: Averaged(optimizer.SGD(0.1)))
    yield Cell("batch norm, dropout", image, RULES["momentum"])
    yield Cell("batch norm, dropout, lamb", image, RULES["lamb"])
    yield Cell("uneven data", dense, RULES["adam"], {0: 4, 1: 2, 2: 3}, steps=4)
    yield Cell("uneven data, worker 0 first", rows, RULES["adam"], {0: 1, 2: 2}, steps=4)
    yield Cell("a worker without data", dense, RULES["adam"], {1: 0})
    yield Cell("uneven data, norms", dense, lambda: optimizer.LarsMomentum(
        0.1, 0.9, grad_clip=clip.GradientClipByGlobalNorm(0.1)), {0: 4, 1: 2, 2: 3}, steps=4)
    yield Cell("nce by rows", lambda: sampled(layers.nce, num_neg_samples=5, sampler="log_uniform"), RULES["adam"])
    yield Cell("hsigmoid by rows", lambda: sampled(layers.hsigmoid), RULES["adagrad"])
    yield Cell("StaticRNN", recurrent_cells.steps, RULES["adam"])
    yield Cell("DynamicRNN", recurrent_cells.sequences, RULES["adagrad"])
    yield Cell("loop", recurrent_cells.loop, lambda: optimizer.SGD(0.1, grad_clip=clip.GradientClipByGlobalNorm(0.1)))
    yield Cell("branch", recurrent_cells.branch, RULES["momentum"])


CELLS = {cell.name: cell for cell in _table()}
METHODS = ("RoundRobin", "HashName", "Balanced")


class Layout(NamedTuple):
    """Who keeps what in one run of a cell."""

    workers: int
    servers: int
    method: str
    is_sliced: bool
    options: dict = {}

    def config(self):
        """The transpiler's options."""
        made = fluid.DistributeTranspilerConfig()
        for name, value in {"split_method": self.method, "slice_var_up": self.is_sliced, **self.options}.items():
            setattr(made, name, value)
        return made

    def endpoints(self):
        """The servers' labels."""
        return [f"127.0.0.1:{6170 + server}" for server in range(self.servers)]


def layout(number, servers, workers):
    """The layout for the cell of this number: over the table every method meets every number of servers."""
    return Layout(workers, servers, METHODS[number % 3], number % 4 != 3)
