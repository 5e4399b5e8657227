"""Wide & deep click prediction in two versions: ``present`` (Criteo lines) and ``first`` (random id lists).

``present``: 13 numbers and 26 texts, each hashed to a row of one shared table. Learns on synthetic lines. With
``--table growing`` the table has a row for any id below 10^10, instead of 1,000,001 rows.
``first``: two lists of ids of any size; the labels are random, so there is nothing to learn (loss near 0.69).

With several workers each has its share of the samples; what they count in the test is added up.
"""

import argparse
import functools
import sys
from typing import Any, NamedTuple

import numpy as np

from fleet_mpi import fluid, paddle
from fleet_mpi.command_line import CommandLine, whole
from fleet_mpi.data.sets import ctr, random_clicks
from fleet_mpi.errors import NotBuilt
from fleet_mpi.examples import training
from fleet_mpi.examples.progress import Progress
from fleet_mpi.paddle.distributed.fleet import metrics as fleet_metrics
from fleet_mpi.paddle.distributed.fleet.utils.ps_util import DistributedInfer

DENSE_FEATURES = 13
SLOTS = 26
TABLE_ROWS = ctr.HASH_DIM
ANY_ID = 10 ** 10   # below it are the ids of a table that grows
EMBEDDING_SIZE = 10
HIDDEN = (400, 400, 400)


class Network(NamedTuple):
    """The variables that a training loop needs; metrics by name, and the variables they add up in."""

    feeds: list
    prediction: Any
    loss: Any
    metrics: dict
    states: list


class WideDeepLayer(paddle.nn.Layer):
    """A linear layer over the numbers, plus dense layers over numbers and embedded ids.

    ``table_rows`` None: the table has a row for any id.
    """

    def __init__(self, table_rows):
        super().__init__()
        init = paddle.nn.initializer
        self.wide = paddle.nn.Linear(DENSE_FEATURES, 1, weight_attr=paddle.ParamAttr(
            initializer=init.TruncatedNormal(mean=0.0, std=DENSE_FEATURES ** -0.5)))
        table = paddle.ParamAttr(name="SparseFeatFactors", initializer=init.Uniform())
        if table_rows is None:
            self.embedding = functools.partial(paddle.static.nn.sparse_embedding, size=[1024, EMBEDDING_SIZE],
                                               param_attr=table)
        else:
            self.embedding = paddle.nn.Embedding(table_rows, EMBEDDING_SIZE, sparse=True, weight_attr=table)
        widths = (SLOTS * EMBEDDING_SIZE + DENSE_FEATURES, *HIDDEN, 1)
        self.deep = [self.add_sublayer(f"linear_{number}", paddle.nn.Linear(
            wide, narrow, weight_attr=paddle.ParamAttr(initializer=init.Normal(std=wide ** -0.5))))
            for number, (wide, narrow) in enumerate(zip(widths, widths[1:]))]

    def forward(self, slots, dense):
        """The probability of a click, [N, 1]."""
        embedded = [paddle.reshape(self.embedding(slot), [-1, EMBEDDING_SIZE]) for slot in slots]
        x = paddle.concat([*embedded, dense], axis=1)
        for linear in self.deep[:-1]:
            x = paddle.nn.functional.relu(linear(x))
        return paddle.nn.functional.sigmoid(paddle.add(self.wide(dense), self.deep[-1](x)))


def network(table_rows=TABLE_ROWS, with_metrics=True):
    """The present variant, in the default program."""
    dense = paddle.static.data(name="dense_input", shape=[None, DENSE_FEATURES], dtype="float32")
    slots = [paddle.static.data(name=f"C{number + 1}", shape=[None, 1], dtype="int64", lod_level=1)
             for number in range(SLOTS)]
    label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
    prediction = WideDeepLayer(table_rows)(slots, dense)
    loss = paddle.mean(paddle.nn.functional.log_loss(input=prediction, label=paddle.cast(label, "float32")))
    metrics, states = _metrics(prediction, label) if with_metrics else ({}, [])
    return Network([dense, *slots, label], prediction, loss, metrics, states)


def _metrics(prediction, label):
    """Metrics over all steps so far, kept in variables that workers can add up.

    All three groups count samples in the same ``total_cnt``, as the original's do: acc is divided after
    the first increment of a step, mae after the second, mse after the third.
    """
    columns = paddle.concat([1 - prediction, prediction], axis=1)
    auc, _, auc_states = paddle.static.auc(input=columns, label=label, num_thresholds=2 ** 12, slide_steps=20)
    truth = paddle.cast(label, "float32")
    # A guard of their own: a network built a second time finds them under the same names.
    with fluid.unique_name.guard():
        total, right, absolute, squared = map(_accumulator, ("total_cnt", "right_cnt", "abserr", "sqrerr"))
    count = paddle.cast(fluid.layers.shape(label)[0:1], "float32")
    share = paddle.metric.accuracy(input=prediction, label=label, k=1)
    acc = _add_up(right, share * count, total, count)
    mae = _add_up(absolute, paddle.nn.functional.l1_loss(prediction, truth, reduction="sum"), total, count)
    mse = _add_up(squared, paddle.nn.functional.mse_loss(prediction, truth, reduction="sum"), total, count)
    metrics = {"auc": auc, "acc": acc, "mae": mae, "mse": mse, "rmse": paddle.sqrt(mse)}
    return metrics, [*auc_states, right, total, absolute, squared]


def _accumulator(name):
    return fluid.layers.create_global_var(shape=[1], value=0.0, dtype="float32", persistable=True, name=name)


def _add_up(state, value, total, count):
    fluid.layers.assign(paddle.add(state, value), output=state)
    fluid.layers.assign(paddle.add(total, count), output=total)
    return fluid.layers.elementwise_div(state, total)


def first_network():
    """The first version, in the default program; its tables take ids of any size."""
    deep_ids = fluid.layers.data(name="dnn_data", shape=[-1, 1], dtype="int64", lod_level=1, append_batch_size=False)
    wide_ids = fluid.layers.data(name="lr_data", shape=[-1, 1], dtype="int64", lod_level=1, append_batch_size=False)
    click = fluid.layers.data(name="click", shape=[-1, 1], dtype="int64", append_batch_size=False)
    small = fluid.initializer.Constant(0.01)
    deep = _summed_rows(deep_ids, "deep_embedding", 128, fluid.initializer.Normal())
    for number, width in enumerate((64, 32)):
        deep = fluid.layers.fc(deep, size=width, act="relu", name=f"dnn-fc-{number}",
                               param_attr=fluid.ParamAttr(initializer=small))
    wide = _summed_rows(wide_ids, "wide_embedding", 1, small)
    prediction = fluid.layers.fc(fluid.layers.concat([deep, wide], axis=1), size=2, act="softmax")
    auc, _, states = fluid.layers.auc(input=prediction, label=click)
    metrics = {"auc": auc, "acc": fluid.layers.accuracy(input=prediction, label=click)}
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=click))
    return Network([deep_ids, wide_ids, click], prediction, loss, metrics, states)


def _summed_rows(ids, name, width, initializer):
    rows = paddle.static.nn.sparse_embedding(input=ids, size=[10, width], param_attr=fluid.ParamAttr(
        name=name, initializer=initializer))
    return fluid.layers.sequence_pool(rows, pool_type="sum")


def main(argv=None):
    """Train one of the versions; returns an exit code."""
    options = _options(argv)
    paddle.enable_static()
    job = training.job(options)
    if options.mode == training.COLLECTIVE and (options.variant == "first" or options.table == "growing"):
        raise NotBuilt("tables that take any id are kept by servers, or by one process alone: equal workers have none; "
                       "train with servers (--mode sync)")
    options.table_rows = TABLE_ROWS if options.table == "fixed" else None
    model = network(options.table_rows) if options.variant == "present" else first_network()
    job.minimize(paddle.optimizer.SGD(learning_rate=options.learning_rate), model.loss)
    if job.is_server:
        return job.serve()
    exe, progress = paddle.static.Executor(paddle.CPUPlace()), Progress(job.name)
    job.start(exe)
    work = train_present if options.variant == "present" else train_first
    code = work(job, exe, model, progress, options)
    job.finish(exe)
    return code


def train_present(job, exe, model, progress, options):
    """Train on Criteo lines, then test on others; 0 when the test AUC is above that of guessing."""
    hashed = {"hash_dim": options.table_rows or ANY_ID}
    _train(job, exe, model, ctr.train(options.data, synthetic_count=options.samples, **hashed), progress, options)
    _forget(model.states)
    # Built a second time, under the same names: it finds the parameters in the scope, or on the servers.
    program, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, startup), fluid.unique_name.guard():
        tested = network(options.table_rows)
    program = DistributedInfer(main_program=program, startup_program=startup).get_dist_infer_program()
    feeder = fluid.DataFeeder(feed_list=tested.feeds, program=program)
    samples = job.share(ctr.test(options.data, synthetic_count=options.test_samples, **hashed))
    for batch in paddle.batch(samples, options.batch_size)():
        exe.run(program, feed=feeder.feed(batch))
    values = _of_all_workers(job, tested.states)
    progress.end("test: " + "  ".join(f"{name} {value:.4f}" for name, value in values.items()))
    return 0 if values["auc"] > 0.5 else 1


def _of_all_workers(job, states):
    """Metrics by name, from what all workers have counted."""
    _, _, positives, negatives, right, total, absolute, squared = states
    # Three groups of metrics have counted every sample.
    samples = fleet_metrics.sum(total, util=job)[0] / 3
    return {"auc": fleet_metrics.auc(positives, negatives, util=job),
            "acc": fleet_metrics.sum(right, util=job)[0] / samples,
            "mae": fleet_metrics.sum(absolute, util=job)[0] / samples,
            "rmse": (fleet_metrics.sum(squared, util=job)[0] / samples) ** 0.5}


def train_first(job, exe, model, progress, options):
    """Train on random ids and labels: 0 when it ran."""
    _train(job, exe, model, random_clicks.data_reader(options.samples), progress, options)
    progress.end("random labels: a loss near 0.693 is all there is to reach")
    return 0


def _train(job, exe, model, samples, progress, options):
    """Passes over this worker's samples, through a loader that feeds by itself."""
    loader = paddle.io.DataLoader.from_generator(feed_list=model.feeds, capacity=64, iterable=False)
    loader.set_sample_generator(job.share(samples), batch_size=options.batch_size, drop_last=True,
                                places=paddle.CPUPlace())
    for number in range(options.passes):
        loader.start()
        try:
            while True:
                loss, auc = exe.run(job.program, fetch_list=[model.loss, model.metrics["auc"]])
                progress.step("pass %d/%d  loss %.4f  auc so far %.4f" % (number + 1, options.passes, loss, auc),
                              options.batch_size)
        except paddle.core.EOFException:
            loader.reset()
    progress.end()


def _forget(states):
    """Zero the variables that metrics add up in, so that a test starts afresh."""
    for state in states:
        tensor = fluid.global_scope().find_var(state.name).get_tensor()
        tensor.set(np.zeros_like(np.array(tensor)), fluid.CPUPlace())


def _options(argv):
    parser = CommandLine(prog="python -m fleet_mpi.examples.wide_and_deep",
                         description=__doc__.splitlines()[0],
                         formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--variant", choices=["present", "first"], default="present")
    parser.add_argument("--table", choices=["fixed", "growing"], default="fixed",
                        help="of the present variant; the first one's grow")
    parser.add_argument("--passes", type=whole, default=1)
    parser.add_argument("--samples", type=int, help="synthetic samples of a pass (default 20000; first: 1000)")
    parser.add_argument("--test-samples", type=int, default=5000,
                        help="synthetic samples of the present variant's test")
    parser.add_argument("--batch-size", type=whole, help="(default 512; first: 4)")
    parser.add_argument("--learning-rate", type=float,
                        help="of SGD (default 0.1; first: 0.01); the guides' 0.0001 needs far more samples")
    parser.add_argument("--data", metavar="PATH", help="a file or folder of Criteo lines, for the present variant")
    training.add_options(parser, api="fleet2")
    options = parser.parse_args(argv)
    samples, batch_size, rate = (20000, 512, 0.1) if options.variant == "present" else (1000, 4, 0.01)
    options.samples = options.samples or samples
    options.batch_size = options.batch_size or batch_size
    options.learning_rate = options.learning_rate or rate
    return options


if __name__ == "__main__":
    sys.exit(main())
