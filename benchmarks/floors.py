"""Floors: the same arithmetic as bare numpy calls on arrays made beforehand, without any engine.

Each function returns a step; calling it computes one batch and returns its loss. fit_a_line and
wide_and_deep train completely; of a ResNet only the products of the convolutions are here.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import inputs

# Columns of one product in a ResNet: several small images together, as BLAS is slow on narrow matrices.
COLUMNS = 784


def set_threads(count):
    """Let BLAS use this many threads."""
    threadpool_limits(count, "blas")


def fit_a_line(batch, rate=0.001):
    """Linear regression, forward, backward and SGD."""
    batches, values = inputs.fit_a_line(batch)
    turn, w, b = itertools.cycle(batches), values["w"], values["b"]
    error, squares = np.empty((2, batch, 1), np.float32)
    w_grad, b_grad = np.empty_like(w), np.empty_like(b)
    scale, rate = np.float32(2 / batch), np.float32(rate)
    dot, add, subtract, multiply, total = np.dot, np.add, np.subtract, np.multiply, np.add.reduce

    def step():
        x, y = next(turn)
        dot(x, w, out=error)
        add(error, b, out=error)
        subtract(error, y, out=error)
        multiply(error, error, out=squares)
        loss = total(squares, axis=None) / batch
        multiply(error, scale, out=error)
        dot(x.T, error, out=w_grad)
        total(error, axis=0, out=b_grad)
        multiply(w_grad, rate, out=w_grad)
        subtract(w, w_grad, out=w)
        multiply(b_grad, rate, out=b_grad)
        subtract(b, b_grad, out=b)
        return float(loss)

    return step


def wide_and_deep(batch, rate=0.1, table=inputs.TABLE):
    """The present wide_and_deep, forward, backward and SGD, rows of the table added where they lie."""
    batches, values = inputs.wide_and_deep(batch, table)
    model = _WideAndDeep(batch, values, np.float32(rate))
    turn = itertools.cycle((dense, ids.ravel(), label.astype(np.float32)) for dense, ids, label in batches)
    return lambda: model.step(*next(turn))


class _WideAndDeep:
    """Arrays of one batch size, and the step over them."""

    def __init__(self, batch, values, rate):
        self.batch, self.rate, self.values = batch, rate, values
        self.weights = [values[f"w{i}"] for i in range(4)]
        self.biases = [values[f"b{i}"] for i in range(4)]
        self.weight_grads = [np.empty_like(w) for w in self.weights]
        self.bias_grads = [np.empty_like(b) for b in self.biases]
        self.layers = [np.empty((batch, width), np.float32) for width in inputs.WIDTHS]
        self.layer_grads = [np.empty_like(layer) for layer in self.layers]
        self.masks = [np.empty(layer.shape, bool) for layer in self.layers]
        self.rows = np.empty((batch * inputs.SLOTS, values["table"].shape[1]), np.float32)
        self.positions = np.empty(self.rows.shape, np.int64)
        self.prediction, self.grad, self.first, self.second = np.empty((4, batch, 1), np.float32)

    def step(self, dense, ids, label):
        """One batch."""
        self._forward(dense, ids)
        loss = self._loss(label)
        self._backward()
        self._update(dense, ids)
        return loss

    def _forward(self, dense, ids):
        np.take(self.values["table"], ids, axis=0, out=self.rows, mode="clip")
        embedded = inputs.WIDTHS[0] - inputs.FEATURES
        self.layers[0][:, :embedded] = self.rows.reshape(self.batch, embedded)
        self.layers[0][:, embedded:] = dense
        for i, (w, b) in enumerate(zip(self.weights, self.biases)):
            out = self.layers[i + 1]
            np.matmul(self.layers[i], w, out=out)
            np.add(out, b, out=out)
            if i < 3:
                np.maximum(out, 0, out=out)
        p = self.prediction
        np.matmul(dense, self.values["wide_w"], out=p)
        np.add(p, self.values["wide_b"], out=p)
        np.add(p, self.layers[4], out=p)
        np.negative(p, out=p)
        np.exp(p, out=p)
        np.add(p, 1, out=p)
        np.reciprocal(p, out=p)

    def _loss(self, label):
        """The loss; leaves its gradient with respect to the sigmoid's argument in ``self.grad``."""
        p, grad, yes, no = self.prediction, self.grad, self.first, self.second
        np.add(p, 1e-4, out=yes)
        np.subtract(1 + 1e-4, p, out=no)
        loss = -float(np.mean(label * np.log(yes) + (1 - label) * np.log(no)))
        np.subtract((1 - label) / no, label / yes, out=grad)
        np.multiply(grad, p * (1 - p), out=grad)
        np.divide(grad, self.batch, out=grad)
        return loss

    def _backward(self):
        above = self.grad
        for i in reversed(range(4)):
            np.matmul(self.layers[i].T, above, out=self.weight_grads[i])
            np.add.reduce(above, axis=0, out=self.bias_grads[i])
            # To a single column belongs an outer product, for which matmul takes six times as long.
            product = np.multiply if i == 3 else np.matmul
            product(above, self.weights[i].T, out=self.layer_grads[i])
            above = self.layer_grads[i]
            if i:
                np.greater(self.layers[i], 0, out=self.masks[i])
                np.multiply(above, self.masks[i], out=above)

    def _update(self, dense, ids):
        values, rate = self.values, self.rate
        for parameter, grad in zip(self.weights + self.biases, self.weight_grads + self.bias_grads):
            np.multiply(grad, rate, out=grad)
            np.subtract(parameter, grad, out=parameter)
        values["wide_w"] -= rate * (dense.T @ self.grad)
        values["wide_b"] -= rate * self.grad.sum()
        table = values["table"]
        width = table.shape[1]
        np.multiply(self.layer_grads[0][:, :inputs.SLOTS * width].reshape(self.rows.shape), rate, out=self.rows)
        # One long index is what ufunc.at is quick with; an index per row takes several times as long.
        np.add(np.multiply(ids, width, out=self.positions[:, 0])[:, None], np.arange(width), out=self.positions)
        np.subtract.at(table.reshape(-1), self.positions.reshape(-1), self.rows.reshape(-1))


def resnet(batch, layers, size, threads):
    """Only the products of all convolutions, forward and both backward, with their columns.

    Threads split the images, with one-threaded BLAS each: threaded BLAS takes twice as long (limits of
    splitting one small product). The loss is None: nothing is trained.
    """
    set_threads(1)
    pool = ThreadPoolExecutor(threads)
    scratch = {}
    work = [_Convolution(conv, batch, threads, scratch) for conv in inputs.convolutions(layers, size)]

    def everywhere(method):
        list(pool.map(lambda part: [getattr(one, method)(part) for one in work], range(threads)))

    def step():
        everywhere("forward")
        everywhere("backward")

    return step


class _Convolution:
    """One convolution over images in groups [group, channels, image, height, width]."""

    def __init__(self, conv, batch, threads, scratch):
        self.conv, self.threads = conv, threads
        area = conv.out_size ** 2
        share = -(-batch // threads)
        self.together = max(1, min(share, COLUMNS // area))
        self.groups = -(-batch // self.together)
        rng = np.random.default_rng(0)
        taps = conv.kernel ** 2
        self.weight = rng.standard_normal((conv.outputs, conv.inputs * taps), np.float32)

        def array(use, *shape):
            # Shared by all convolutions of the same shape: values do not matter here, memory does.
            return scratch.setdefault((use, shape), np.zeros(shape, np.float32))

        shape = (self.groups, conv.inputs, self.together, conv.size, conv.size)
        self.x, self.x_grad = array("x", *shape), array("x_grad", *shape)
        self.y = array("y", self.groups, conv.outputs, self.together * area)
        self.weight_grads = array("weight_grad", threads, 2, *self.weight.shape)
        edge = conv.size + conv.kernel - 1
        self.padded = array("padded", threads, conv.inputs, self.together, edge, edge)
        self.columns = array("columns", threads, conv.inputs, conv.kernel, conv.kernel, self.together,
                             conv.out_size, conv.out_size)
        self.plain = conv.kernel == conv.stride == 1

    def forward(self, part):
        """All groups of one thread's share."""
        for group in range(part, self.groups, self.threads):
            np.matmul(self.weight, self._gather(group, part), out=self.y[group])

    def backward(self, part):
        """Gradients of the weight (summed in this thread) and of the images; the first has no need of the latter."""
        total, share = self.weight_grads[part]
        total.fill(0)
        for group in range(part, self.groups, self.threads):
            np.matmul(self.y[group], self._gather(group, part).T, out=share)
            np.add(total, share, out=total)
            if self.conv.name != "conv1":
                self._spread(group, part)

    def _gather(self, group, part):
        conv, x = self.conv, self.x[group]
        if self.plain:
            return x.reshape(conv.inputs, -1)
        source, columns = x, self.columns[part]
        if conv.kernel > 1:
            source = self.padded[part]
            source[:, :, self._inside, self._inside] = x
        for (row, column), window in self._windows():
            columns[:, row, column] = source[window]
        return columns.reshape(self.weight.shape[1], -1)

    def _spread(self, group, part):
        conv, x_grad = self.conv, self.x_grad[group]
        if self.plain:
            np.matmul(self.weight.T, self.y[group], out=x_grad.reshape(conv.inputs, -1))
            return
        columns = self.columns[part]
        np.matmul(self.weight.T, self.y[group], out=columns.reshape(self.weight.shape[1], -1))
        target = self.padded[part] if conv.kernel > 1 else x_grad
        target.fill(0)
        for (row, column), window in self._windows():
            target[window] += columns[:, row, column]
        if conv.kernel > 1:
            x_grad[...] = target[:, :, self._inside, self._inside]
            target.fill(0)

    @property
    def _inside(self):
        before = (self.conv.kernel - 1) // 2
        return slice(before, before + self.conv.size)

    def _windows(self):
        reach = (self.conv.out_size - 1) * self.conv.stride + 1
        for row, column in itertools.product(range(self.conv.kernel), repeat=2):
            yield (row, column), (slice(None), slice(None), slice(row, row + reach, self.conv.stride),
                                  slice(column, column + reach, self.conv.stride))
