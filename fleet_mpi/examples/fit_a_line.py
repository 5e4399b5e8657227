"""Linear regression of house prices on 13 features: the smallest program that trains.

Ends with success when a pass lowers the mean loss by less than 2 %, with its error on prices it never saw and what the
training took. With several workers each has all of the few samples, in an order of its own, and ends by itself.
"""

import argparse
import sys

import numpy as np

from fleet_mpi import fluid, paddle
from fleet_mpi.command_line import CommandLine, whole
from fleet_mpi.examples import training
from fleet_mpi.examples.progress import Progress

SMALL_GAIN = 0.02  # of a pass over the last one: the line lies where it will lie


def network():
    """Variables (x, y, prediction, loss) of the model, in the default program."""
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    prediction = fluid.layers.fc(input=x, size=1, act=None)
    cost = fluid.layers.square_error_cost(input=prediction, label=y)
    return x, y, prediction, fluid.layers.mean(cost)


def main(argv=None):
    """Train until a pass gains little; returns 0 then, 1 when the passes ran out."""
    options = _options(argv)
    job = training.job(options)
    x, y, _, loss = network()
    tested = fluid.default_main_program().clone(for_test=True)
    job.minimize(fluid.optimizer.SGD(learning_rate=options.learning_rate), loss)
    if job.is_server:
        return job.serve()
    rows = paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500)
    batches = paddle.batch(rows, batch_size=options.batch_size)

    place = fluid.CPUPlace()
    exe, feeder, progress = fluid.Executor(place), fluid.DataFeeder(feed_list=[x, y], place=place), Progress(job.name)
    job.start(exe)
    with job.keeping(exe) as keeping:
        reached = _train(job, exe, keeping, batches, feeder, loss, progress, options)
    if reached and job.worker == 0:
        prices = list(paddle.dataset.uci_housing.test()())
        error, = exe.run(tested, feed=feeder.feed(prices), fetch_list=[loss])
        for line in summary(job, progress, float(error[0]), [price[0] for _, price in prices]):
            progress.end(line)
    job.finish(exe)
    keeping.leave_if_stopped()
    return 0 if reached else 1


def _train(job, exe, keeping, batches, feeder, loss, progress, options):
    """Whether a pass gained little."""
    done, step, before = keeping.resume(), 0, np.inf
    for number in range(1, options.passes + 1):
        losses, sizes = [], []
        for batch in batches():
            step += 1
            if step <= done:
                continue
            value, = exe.run(job.program, feed=feeder.feed(batch), fetch_list=[loss])
            losses.append(value[0])
            sizes.append(len(batch))
            progress.step(f"pass {number}/{options.passes}  loss {value[0]:.2f}", len(batch))
            if keeping.stopping(step):
                progress.end(f"stopped after step {step}")
                return False
        mean = job.lowest(np.average(losses, weights=sizes)) if losses else np.inf
        if mean > (1 - SMALL_GAIN) * before:
            progress.end(f"pass {number}: mean loss {mean:.2f}, {before:.2f} in the pass before: converged")
            return True
        before = mean
    progress.end(f"not converged in {options.passes} passes: mean loss {before:.2f}")
    return False


def summary(job, progress, error, prices):
    """What was reached, and what it took: two lines, given the mean squared error over test prices."""
    yield (f"test: {len(prices)} prices it never saw are missed by {np.sqrt(error):.2f} (root mean square; by "
           f"{np.std(prices):.2f} if the mean were the guess)")
    each = f" by each of {job.workers} workers" if job.workers > 1 else ""
    yield (f"took: {progress.total:,} samples{each} in {progress.seconds:.2f} s, {progress.speed:,.0f} samples/s, "
           f"after {progress.first_step_s:.2f} s for the first step; {job.traffic()}")


def _options(argv):
    parser = CommandLine(prog="python -m fleet_mpi.examples.fit_a_line",
                         description=__doc__.splitlines()[0],
                         formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--passes", type=whole, default=100, help="most passes over the data")
    parser.add_argument("--batch-size", type=whole, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    training.add_model_dir(parser)
    training.add_options(parser, api="transpiler")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
