"""The models whose steps are counted: ``python -m tests.gpu.counted_models [MODEL...]`` prints the counts of each.

A line of JSON for each model. ``calls`` are those that the host makes in a step, of functions in Python and in C;
``milliseconds`` its CPU time, which means something with FLEET_EMULATION_NOOP=1 only: else the emulation computes in
the same thread.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fleet_mpi import fluid, paddle
from fleet_mpi.examples import resnet, wide_and_deep
from fleet_mpi.runtime import sessions
from tests.gpu_emulation import counters

PIXELS, BATCH, TABLE_ROWS = 32, 2, 1000
TIMED_STEPS = 20


class Step(NamedTuple):
    """A function that trains a model for one step, and the number of variables that it feeds."""

    run: Callable
    feeds: int


def resnet_step(layers, with_amp=False):
    """A ResNet on small images, by momentum with L2 decay."""
    def network():
        learn = paddle.optimizer.Momentum(learning_rate=0.1, momentum=0.9,
                                          weight_decay=paddle.regularizer.L2Decay(1e-4))
        if with_amp:
            learn = paddle.static.amp.decorate(learn, use_dynamic_loss_scaling=True)
        return resnet.network(layers, PIXELS, with_metrics=False).loss, learn
    images = np.random.default_rng(0).standard_normal((BATCH, 3, PIXELS, PIXELS)).astype("float32")
    return _step(network, {"x": images, "y": np.array([[1], [2]])})


def wide_and_deep_step(servers=0):
    """wide_and_deep by sgd, alone or as the worker of servers in the same process."""
    def network():
        return (wide_and_deep.network(TABLE_ROWS, with_metrics=False).loss, paddle.optimizer.SGD(learning_rate=0.1))
    random = np.random.default_rng(0)
    feed = {"dense_input": random.random((BATCH, wide_and_deep.DENSE_FEATURES), np.float32),
            "label": np.array([[0], [1]])}
    for number in range(wide_and_deep.SLOTS):
        feed[f"C{number + 1}"] = random.integers(0, TABLE_ROWS, (BATCH, 1))
    return _step(network, feed, servers)


def _step(network, feed, servers=0):
    paddle.enable_static()
    scope, main, startup = paddle.static.Scope(), paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        loss, learn = network()
        learn.minimize(loss)
        if servers:
            _connect(main, scope, servers)
    executor = paddle.static.Executor(paddle.CUDAPlace(0))
    executor.run(startup, scope=scope)
    return Step(lambda: executor.run(main, feed=feed, fetch_list=[loss], scope=scope), len(feed))


def _connect(program, scope, servers):
    """Let the worker have servers that are objects of this process, without messages between."""
    transpiler = fluid.DistributeTranspiler()
    endpoints = ",".join(f"127.0.0.1:{7000 + number}" for number in range(servers))
    transpiler.transpile(0, program=program, pservers=endpoints, trainers=1)
    plan = transpiler.distribution
    sessions.connect(plan, scope, sessions.embedded(plan, [sessions.started_scope(plan, one)
                                                           for one in range(servers)]))


MODELS = {
    "ResNet-18": lambda: resnet_step(18),
    "ResNet-50": lambda: resnet_step(50),
    "ResNet-50, AMP": lambda: resnet_step(50, with_amp=True),
    "ResNet-18, AMP": lambda: resnet_step(18, with_amp=True),
    "wide_and_deep": wide_and_deep_step,
    "wide_and_deep, 2 servers": lambda: wide_and_deep_step(2),
}


def counts_of(step):
    """What a step asks of its device, once the first two have compiled it and found their memory."""
    for _ in range(2):
        step.run()
    with counters.counted() as counts:
        step.run()
    return counts


def _calls(step):
    """How many functions are called in a step."""
    found = 0

    def count(frame, event, argument):
        nonlocal found
        found += event in ("call", "c_call")
    sys.setprofile(count)
    try:
        step.run()
    finally:
        sys.setprofile(None)
    return found


def _milliseconds(step):
    """CPU time of this thread for one step: the least of several, since neighbours on the machine only add to it."""
    found = []
    for _ in range(TIMED_STEPS):
        begun = time.thread_time()
        step.run()
        found.append(time.thread_time() - begun)
    return min(found) * 1e3


def main(names):
    """Print a line for every model named, or for all."""
    for name in names or MODELS:
        step = MODELS[name]()
        counts = vars(counts_of(step))
        print(json.dumps({"model": name, "feeds": step.feeds, **counts, "calls": _calls(step),
                          "milliseconds": round(_milliseconds(step), 2)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
