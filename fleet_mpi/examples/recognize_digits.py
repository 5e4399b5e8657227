"""LeNet on MNIST digits: two convolutions with pooling, one dense layer, Adam.

With several workers each has its share of the images, tests all by itself, and ends when it is satisfied. With
``--mode collective`` there are no servers.
"""

import argparse
import sys

import numpy as np

from fleet_mpi import fluid, paddle
from fleet_mpi.command_line import CommandLine, whole
from fleet_mpi.examples import training
from fleet_mpi.examples.progress import Progress


def network():
    """Variables (image, label, prediction, loss, accuracy) of the model, in the default program."""
    image = fluid.layers.data(name="img", shape=[1, 28, 28], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    small = fluid.nets.simple_img_conv_pool(input=image, num_filters=20, filter_size=5, pool_size=2,
                                            pool_stride=2, act="relu")
    smaller = fluid.nets.simple_img_conv_pool(input=small, num_filters=50, filter_size=5, pool_size=2,
                                              pool_stride=2, act="relu")
    prediction = fluid.layers.fc(input=smaller, size=10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))
    accuracy = fluid.layers.accuracy(input=prediction, label=label)
    return image, label, prediction, loss, accuracy


def main(argv=None):
    """Train and test after every pass; returns 0 once the test accuracy is good enough, else 1."""
    options = _options(argv)
    job = training.job(options)
    image, label, _, loss, accuracy = network()
    test_program = fluid.default_main_program().clone(for_test=True)
    job.minimize(fluid.optimizer.Adam(learning_rate=options.learning_rate), loss)
    if job.is_server:
        return job.serve()
    samples = job.share(_first(paddle.dataset.mnist.train(), options.samples))
    train = paddle.batch(paddle.reader.shuffle(samples, buf_size=2000), batch_size=options.batch_size, drop_last=True)
    test_batches = paddle.batch(_first(paddle.dataset.mnist.test(), options.test_samples), batch_size=500)

    place = fluid.CPUPlace()
    feeder = fluid.DataFeeder(feed_list=[image, label], place=place)
    exe = fluid.Executor(place)
    job.start(exe)

    def test():
        """The accuracy on the test set, as of now."""
        return _test_accuracy(exe, test_program, feeder, test_batches, accuracy)

    with job.keeping(exe) as keeping:
        reached = _train(job, exe, keeping, train, feeder, [loss, accuracy], test, options)
    job.finish(exe)
    keeping.leave_if_stopped()
    return 0 if reached else 1


def _train(job, exe, keeping, batches, feeder, fetched, test, options):
    """Whether the test was passed after one of the passes."""
    progress, done, step = Progress(job.name), keeping.resume(), 0
    for number in range(1, options.passes + 1):
        for batch in batches():
            step += 1
            if step <= done:
                continue
            values = exe.run(job.program, feed=feeder.feed(batch), fetch_list=fetched)
            progress.step("pass %d/%d  loss %.4f  accuracy %.3f" % (number, options.passes, *map(float, values)),
                          len(batch))
            if keeping.stopping(step):
                progress.end(f"stopped after step {step}")
                return False
        if step >= done:
            reached = job.lowest(test())
            progress.end(f"pass {number}: test accuracy {reached:.4f}")
            if reached >= options.good_accuracy:
                return True
    return False


def _first(reader, samples):
    return paddle.reader.firstn(reader, samples) if samples else reader


def _test_accuracy(exe, program, feeder, batches, accuracy):
    """Mean over the test set, each batch counted by its size."""
    reached = [(float(exe.run(program, feed=feeder.feed(batch), fetch_list=[accuracy])[0]), len(batch))
               for batch in batches()]
    values, sizes = zip(*reached)
    return float(np.average(values, weights=sizes))


def _options(argv):
    parser = CommandLine(prog="python -m fleet_mpi.examples.recognize_digits",
                         description=__doc__.splitlines()[0],
                         formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--passes", type=whole, default=5, help="most passes over the data")
    parser.add_argument("--batch-size", type=whole, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument("--samples", type=int, default=0, metavar="N", help="train on the first N only; 0: all")
    parser.add_argument("--test-samples", type=int, default=0, metavar="N", help="test on the first N only; 0: all")
    parser.add_argument("--good-accuracy", type=float, default=0.95, help="end when the test set reaches this")
    training.add_model_dir(parser)
    training.add_options(parser, api="fleet")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
