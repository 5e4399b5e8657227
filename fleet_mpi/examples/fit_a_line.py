"""Linear regression of house prices on 13 features: the smallest program that trains.

Ends with success as soon as one batch has a loss below 10. With several workers each has all of the few samples, in
an order of its own, and ends by itself.
"""

import argparse
import sys

from fleet_mpi import fluid, paddle
from fleet_mpi.examples import training
from fleet_mpi.examples.progress import Progress

GOOD_LOSS = 10.0


def network():
    """Variables (x, y, prediction, loss) of the model, in the default program."""
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    prediction = fluid.layers.fc(input=x, size=1, act=None)
    cost = fluid.layers.square_error_cost(input=prediction, label=y)
    return x, y, prediction, fluid.layers.mean(cost)


def main(argv=None):
    """Train until a batch is good enough; returns 0 then, 1 when the passes ran out."""
    options = _options(argv)
    job = training.job(options)
    x, y, _, loss = network()
    job.minimize(fluid.optimizer.SGD(learning_rate=options.learning_rate), loss)
    if job.is_server:
        return job.serve()
    rows = paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500)
    batches = paddle.batch(rows, batch_size=options.batch_size)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    job.start(exe)
    with job.keeping(exe) as keeping:
        reached = _train(job, exe, keeping, batches, fluid.DataFeeder(feed_list=[x, y], place=place), loss, options)
    job.finish(exe)
    keeping.leave_if_stopped()
    return 0 if reached else 1


def _train(job, exe, keeping, batches, feeder, loss, options):
    """Whether a batch was good enough within the passes."""
    progress, done = Progress(job.name), keeping.resume()
    for step, (number, batch) in enumerate(_all_batches(batches, options.passes), 1):
        if step <= done:
            continue
        value, = exe.run(job.program, feed=feeder.feed(batch), fetch_list=[loss])
        progress.step(f"pass {number}/{options.passes}  loss {value[0]:.2f}", len(batch))
        lowest = job.lowest(value[0])
        if lowest < GOOD_LOSS:
            progress.end(f"pass {number}: a batch has loss {lowest:.2f}, below {GOOD_LOSS:g}")
            return True
        if keeping.stopping(step):
            progress.end(f"stopped after step {step}")
            return False
    progress.end(f"no batch had a loss below {GOOD_LOSS:g} in {options.passes} passes")
    return False


def _all_batches(batches, passes):
    """(number of the pass, batch), one after the other."""
    return ((number, batch) for number in range(1, passes + 1) for batch in batches())


def _options(argv):
    parser = argparse.ArgumentParser(prog="python -m fleet_mpi.examples.fit_a_line",
                                     description=__doc__.splitlines()[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--passes", type=int, default=100, help="most passes over the data")
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.001)
    training.add_model_dir(parser)
    training.add_options(parser, api="transpiler")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
