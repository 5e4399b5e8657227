"""Imports as scripts of 2.5 and later have them; eager mode is imported, offered and not used."""

import argparse
import os
import tempfile

import numpy as np
import paddle
import paddle.base as base
import paddle.nn.functional as F
from paddle.base import core
from paddle.base.dygraph import to_variable
from paddle.base.framework import default_main_program, default_startup_program
from paddle.base.log_helper import get_logger
from paddle.distributed.fleet.utils import LocalFS
from paddle.fluid.dygraph.parallel import DataParallel
from paddle.framework import ParamAttr
from paddle.incubate.distributed.fleet import role_maker
from paddle.incubate.distributed.fleet.collective import fleet
from paddle.incubate.optimizer import GradientMergeOptimizer
from paddle.jit import to_static
from paddle.nn.layer.common import Linear
from paddle.static.io import load_inference_model, save_inference_model

logger = get_logger(__name__, 20, fmt="%(message)s")


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = Linear(4, 1, weight_attr=ParamAttr(name="w"))

    @paddle.no_grad()
    def count(self):
        return len(self.parameters())

    @to_static
    def eager_forward(self, x):
        return self.linear(x)

    def forward(self, x):
        return self.linear(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dygraph", action="store_true")
    arguments = parser.parse_args()
    paddle.enable_static()
    if arguments.dygraph:
        model = DataParallel(Net())
        return model(to_variable(np.ones((1, 4), "float32")))
    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    base.default_main_program().random_seed = base.default_startup_program().random_seed = 5
    x, y = paddle.static.data("x", [None, 4]), paddle.static.data("y", [None, 1])
    net = Net()
    guess = net(x)
    loss = paddle.mean(F.square_error_cost(guess, y))
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.05)).minimize(loss)
    place = base.CUDAPlace(0) if core.is_compiled_with_cuda() else base.CPUPlace()
    exe = base.Executor(place)
    exe.run(default_startup_program())
    rows = np.random.RandomState(0).rand(32, 4).astype("float32")
    losses = [exe.run(default_main_program(), feed={"x": rows, "y": rows.sum(1, keepdims=True)}, fetch_list=[loss])[0]
              for _ in range(150)]
    folder = tempfile.mkdtemp()
    save_inference_model(os.path.join(folder, "model"), [x], [guess], exe)
    with base.scope_guard(base.core.Scope()):
        program, feeds, targets = load_inference_model(os.path.join(folder, "model"), exe)
        again, = exe.run(program, feed={feeds[0]: rows}, fetch_list=targets)
    LocalFS().delete(folder)
    logger.info("first=%f last=%f", losses[0][0], losses[-1][0])
    print("first=%f last=%f error=%f parameters=%d wraps=%d" % (
        losses[0][0], losses[-1][0], np.abs(again - rows.sum(1, keepdims=True)).max(), net.count(),
        GradientMergeOptimizer(paddle.optimizer.SGD(0.1), k_steps=2) is not None))


if __name__ == "__main__":
    main()
