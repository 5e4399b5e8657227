"""What a training step asks of a device: launches, products, copies and waits, counted by the emulation.

The bounds are what the engine needs today: a step that asks for more fails here, a change that needs fewer lowers them.
"""

import os

import numpy as np
import pytest

from fleet_mpi import paddle
from fleet_mpi.examples import resnet

counters = pytest.importorskip("tests.gpu_emulation.counters", reason="the emulation of CUDA is not in this checkout")
if "FLEET_EMULATION" not in os.environ:
    pytest.skip("no emulated GPU to count on: build one (tests/gpu_emulation) and source its env.sh",
                allow_module_level=True)

FEEDS = 2  # the images and their labels
# Layers: launches and products of a step, forward, backward and update by momentum with L2 decay.
MOST = {18: (159, 65), 50: (311, 161)}


@pytest.fixture(scope="module", params=MOST)
def step(request):
    """The number of layers of a ResNet, and a function that trains it for one step; it has run once."""
    paddle.enable_static()
    scope, main, startup = paddle.static.Scope(), paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        loss = resnet.network(request.param, 32, with_metrics=False).loss
        paddle.optimizer.Momentum(learning_rate=0.1, momentum=0.9,
                                  weight_decay=paddle.regularizer.L2Decay(1e-4)).minimize(loss)
    executor = paddle.static.Executor(paddle.CUDAPlace(0))
    executor.run(startup, scope=scope)
    images = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype("float32")
    feed = {"x": images, "y": np.array([[1], [2]])}

    def run():
        return executor.run(main, feed=feed, fetch_list=[loss], scope=scope)
    run()
    return request.param, run


def test_a_step_launches_no_more_than_it_needs(step):
    layers, run = step
    with counters.counted() as counts:
        run()
    launches, products = MOST[layers]
    assert counts.launches <= launches and counts.blas_calls <= products, vars(counts)


def test_a_step_moves_the_feeds_and_the_fetch_only_and_waits_once(step):
    _, run = step
    with counters.counted() as counts:
        run()
    assert (counts.uploads, counts.downloads, counts.allocations) == (FEEDS, 1, 0), vars(counts)
    assert counts.waits <= 1, vars(counts)
