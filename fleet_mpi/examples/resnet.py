"""ResNet with 18 to 152 layers on flowers; by default a small one that learns one batch by heart.

``--layers 50 --image-size 224 --batch-size 32 --batches 0 --passes 10`` is the size of the guides. Several workers have
a share of the set each, and average their gradients: ``mpirun -np 2 python -m fleet_mpi.examples.resnet``.
"""

import argparse
import itertools
import sys
from typing import Any, NamedTuple

import numpy as np

from fleet_mpi import fluid, paddle
from fleet_mpi.command_line import CommandLine, whole
from fleet_mpi.errors import UsageError
from fleet_mpi.examples import training
from fleet_mpi.examples.progress import Progress

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
FLOWERS = 102
FLOWERS_SIZE = 224


class Network(NamedTuple):
    """The variables that a training loop needs."""

    image: Any
    label: Any
    logits: Any
    loss: Any
    top1: Any
    top5: Any


def network(layers=50, image_size=224, classes=FLOWERS, with_metrics=True):
    """The model in the default program, channels first."""
    image = paddle.static.data(name="x", shape=[None, 3, image_size, image_size], dtype="float32")
    label = paddle.static.data(name="y", shape=[None, 1], dtype="int64")
    logits = class_scores(image, layers, classes)
    loss = paddle.nn.functional.cross_entropy(input=logits, label=label)
    top1 = top5 = None
    if with_metrics:
        top1 = paddle.metric.accuracy(input=logits, label=label, k=1)
        top5 = paddle.metric.accuracy(input=logits, label=label, k=5)
    return Network(image, label, logits, loss, top1, top5)


def class_scores(image, layers, classes):
    """The logits of an image variable, [N, classes]."""
    block = _bottleneck if layers >= 50 else _basic_block
    x = _conv_norm(image, "conv1", 64, 7, stride=2, act="relu")
    x = fluid.layers.pool2d(x, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max")
    for stage, count in enumerate(BLOCKS[layers]):
        for number in range(count):
            stride = 2 if number == 0 and stage > 0 else 1
            x = block(x, _block_name(layers, stage, number), 64 << stage, stride, is_first=number == 0)
    x = fluid.layers.pool2d(x, pool_type="avg", global_pooling=True)
    spread = x.shape[1] ** -0.5
    weight = fluid.ParamAttr(initializer=fluid.initializer.Uniform(-spread, spread))
    return fluid.layers.fc(x, size=classes, param_attr=weight)


def _block_name(layers, stage, number):
    """res2a, res2b, ...; the many blocks of stage 4 in the deepest ones are res4a, res4b1, res4b2, ..."""
    if layers >= 101 and stage == 2:
        return "res4a" if number == 0 else f"res4b{number}"
    return f"res{stage + 2}{chr(ord('a') + number)}"


def _bottleneck(x, name, width, stride, is_first):
    short = _shortcut(x, name, width * 4, stride, is_first)
    made = _conv_norm(x, name + "_branch2a", width, 1, act="relu")
    made = _conv_norm(made, name + "_branch2b", width, 3, stride, act="relu")
    made = _conv_norm(made, name + "_branch2c", width * 4, 1)
    return fluid.layers.elementwise_add(short, made, act="relu", name=name + ".add.output.5")


def _basic_block(x, name, width, stride, is_first):
    short = _shortcut(x, name, width, stride, is_first)
    made = _conv_norm(x, name + "_branch2a", width, 3, stride, act="relu")
    made = _conv_norm(made, name + "_branch2b", width, 3)
    return fluid.layers.elementwise_add(short, made, act="relu", name=name + ".add.output.5")


def _shortcut(x, name, channels, stride, is_first):
    return _conv_norm(x, name + "_branch1", channels, 1, stride) if is_first else x


def _conv_norm(x, name, filters, kernel, stride=1, act=None):
    made = fluid.layers.conv2d(x, num_filters=filters, filter_size=kernel, stride=stride, padding=(kernel - 1) // 2,
                               bias_attr=False, param_attr=fluid.ParamAttr(name=name + "_weights"))
    norm = "bn_conv1" if name == "conv1" else "bn" + name[len("res"):]
    return fluid.layers.batch_norm(made, act=act, param_attr=fluid.ParamAttr(name=norm + "_scale"),
                                   bias_attr=fluid.ParamAttr(name=norm + "_offset"),
                                   moving_mean_name=norm + "_mean", moving_variance_name=norm + "_variance")


def main(argv=None):
    """Train; returns 0 when the last pass had lower losses than the first (one pass: finite ones), else 1."""
    options = _options(argv)
    paddle.enable_static()
    job = training.job(options)
    model = network(options.layers, options.image_size)
    job.checkpoints = block_sums()
    job.minimize(paddle.optimizer.Momentum(learning_rate=options.learning_rate, momentum=0.9,
                                           weight_decay=paddle.regularizer.L2Decay(1e-4)), model.loss)
    if job.is_server:
        return job.serve()
    own_device = paddle.distributed.ParallelEnv().device_id
    exe = paddle.static.Executor(paddle.CUDAPlace(own_device) if options.gpu else paddle.CPUPlace())
    job.start(exe)
    passes = _train(job, exe, model, options)
    first, last = job.all_reduce(np.array([np.mean(passes[0]), np.mean(passes[-1])])) / job.workers
    job.finish(exe)
    Progress(job.name).end(f"loss {first:.4f} in the first pass, {last:.4f} in the last ({len(passes)} passes)")
    return 0 if last < first or len(passes) == 1 and np.isfinite(last) else 1


def block_sums():
    """The names of what comes out of each block, before the ReLU: recomputing may begin there."""
    return [name for name in fluid.default_main_program().global_block().vars if name.endswith(".add.output.5.tmp_0")]


def _train(job, exe, model, options):
    """The losses of every pass; the first worker tells of some batches, as the guide does."""
    passes, batches, step = [], _batches(job, options), 0
    while len(passes) < options.passes and not (options.steps and step == options.steps):
        passes.append([])
        for batch, (images, labels) in enumerate(batches()):
            loss, top1, top5 = exe.run(job.program, feed={"x": images, "y": labels},
                                       fetch_list=[model.loss, model.top1, model.top5])
            passes[-1].append(float(loss))
            if job.worker == 0 and batch % options.told_every == 0:
                print("[Epoch %d, batch %d] loss: %.5f, acc1: %.5f, acc5: %.5f" %
                      (len(passes) - 1, batch, loss, top1, top5), flush=True)
            step += 1
            if step == options.steps:
                break
        if not passes[-1]:
            raise UsageError(f"the set has less than a batch of {options.batch_size} for each of {job.workers} "
                             f"worker(s): give a smaller --batch-size")
    return passes


def _batches(job, options):
    """A reader of this worker's (images, labels): the same few batches in every pass, or the whole set."""
    samples = job.share(paddle.dataset.flowers.train(use_xmap=False))
    reader = paddle.batch(samples, options.batch_size, drop_last=True)
    if not options.batches:
        return lambda: (_arrays(batch, options.image_size) for batch in reader())
    kept = [_arrays(batch, options.image_size) for batch in itertools.islice(reader(), options.batches)]
    return lambda: iter(kept)


def _arrays(samples, size):
    """Images [n, 3, size, size] and labels [n, 1]; smaller images take every so many pixels."""
    images = np.stack([pixels.reshape(3, FLOWERS_SIZE, FLOWERS_SIZE) for pixels, _ in samples])
    chosen = np.arange(size) * FLOWERS_SIZE // size
    images = np.ascontiguousarray(images[:, :, chosen][:, :, :, chosen])
    return images, np.array([[label] for _, label in samples], np.int64)


def _options(argv):
    parser = CommandLine(prog="python -m fleet_mpi.examples.resnet", description=__doc__.splitlines()[0],
                         formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--layers", type=int, default=18, choices=sorted(BLOCKS))
    parser.add_argument("--image-size", type=whole, default=32, metavar="PIXELS")
    parser.add_argument("--batch-size", type=whole, default=16, help="of each worker")
    parser.add_argument("--batches", type=whole, default=1, metavar="N",
                        help="train on the first N batches of a worker in every pass; 0: the whole set")
    parser.add_argument("--passes", type=whole, default=40)
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="end after N steps; 0: with the last pass")
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--told-every", type=whole, default=5, metavar="N", help="a line for every Nth batch of a pass")
    parser.add_argument("--gpu", action="store_true", help="on this rank's GPU; on the CPU where there is none")
    training.add_options(parser, api="fleet2", mode=training.COLLECTIVE)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
