"""The engine as a contender: the example models through ``Executor.run``, fed with numpy arrays.

Each function returns a step; calling it trains on one batch and returns its loss.
"""

import itertools

from benchmarks import inputs
from fleet_mpi import fluid
from fleet_mpi.examples import fit_a_line as line_example, resnet as resnet_example, wide_and_deep as wide_example
from fleet_mpi.kernels.threads import set_threads  # noqa: F401  (every contender has one)


def fit_a_line(batch, rate=0.001):
    """Linear regression with SGD."""
    batches, values = inputs.fit_a_line(batch)
    feeds = [{"x": x, "y": y} for x, y in batches]
    return Training(lambda: line_example.network()[-1], fluid.optimizer.SGD(rate), feeds,
                    {"fc_0.w_0": values["w"], "fc_0.b_0": values["b"]}).step


def wide_and_deep(batch, rate=0.1, table=inputs.TABLE):
    """The present wide_and_deep, 26 lookups with row gradients, without its metrics."""
    batches, values = inputs.wide_and_deep(batch, table)
    feeds = [clicks_feed(*one) for one in batches]
    named = {"SparseFeatFactors": values["table"], "linear_0.w_0": values["wide_w"], "linear_0.b_0": values["wide_b"]}
    for i in range(4):
        named[f"linear_{i + 1}.w_0"], named[f"linear_{i + 1}.b_0"] = values[f"w{i}"], values[f"b{i}"]
    return Training(lambda: wide_example.network(table_rows=table[0], with_metrics=False).loss,
                    fluid.optimizer.SGD(rate), feeds, named).step


def clicks_feed(dense, ids, label):
    """What the present wide_and_deep is fed with, of one batch."""
    return {"dense_input": dense, "label": label,
            **{f"C{i + 1}": ids[:, i:i + 1].copy() for i in range(inputs.SLOTS)}}


def resnet(batch, layers, size, rate=0.1):
    """A ResNet with momentum and L2 decay."""
    batches, values = inputs.resnet(batch, layers, size)
    feeds = [{"x": images, "y": label} for images, label in batches]
    optimizer = fluid.optimizer.Momentum(rate, momentum=0.9, regularization=fluid.regularizer.L2Decay(1e-4))
    return Training(lambda: resnet_example.network(layers, size, inputs.CLASSES, with_metrics=False).loss,
                    optimizer, feeds, values).step


class Training:
    """Programs of a model, started from given values or its own; ``step`` trains on the next of its feeds."""

    def __init__(self, build_loss, optimizer, feeds, values):
        self.program, startup = fluid.Program(), fluid.Program()
        self.scope = fluid.Scope()
        with fluid.program_guard(self.program, startup), fluid.unique_name.guard():
            self.loss = build_loss()
            optimizer.minimize(self.loss)
        self.exe = fluid.Executor()  # on the CPU, unless paddle.set_device said otherwise
        self.exe.run(startup, scope=self.scope)
        for name, value in values.items():
            self.scope.find_var(name).get_tensor().set(value, fluid.CPUPlace())
        self._step = step_of(self.run, feeds)

    def step(self):
        """Train on the next batch; returns its loss."""
        return self._step()

    def run(self, feed):
        """Train on a batch; returns [its loss]."""
        return self.exe.run(self.program, feed=feed, fetch_list=[self.loss], scope=self.scope)


def step_of(run, feeds):
    """A function that trains on the next of some batches, in turn, and returns its loss; ``run(feed)`` trains on one.
    """
    turn = itertools.cycle(feeds)

    def step():
        loss, = run(next(turn))
        return float(loss)
    return step
