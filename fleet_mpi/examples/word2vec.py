"""Word vectors: four words predict the fifth, through one table shared by all four.

With ``--negatives N`` the fifth word is told from N others that are drawn for it (negative sampling), and the tables of
both grow with the words they meet: no list of words has to be known.
With several workers each has its share of the text.
"""

import argparse
import sys

import numpy as np

from fleet_mpi import fluid, paddle
from fleet_mpi.command_line import CommandLine, whole
from fleet_mpi.errors import NotBuilt
from fleet_mpi.examples import training
from fleet_mpi.examples.progress import Progress

WORDS = ("firstw", "secondw", "thirdw", "forthw", "nextw")


def network(dictionary_size, embedding_size=32, hidden_size=256, is_sparse=True):
    """Variables (five words, prediction, loss) of the model, in the default program."""
    words = [fluid.layers.data(name=name, shape=[1], dtype="int64") for name in WORDS]
    vectors = [fluid.layers.embedding(input=word, size=[dictionary_size, embedding_size], dtype="float32",
                                      is_sparse=is_sparse, param_attr="shared_w") for word in words[:-1]]
    joined = fluid.layers.concat(input=vectors, axis=1)
    hidden = fluid.layers.fc(input=joined, size=hidden_size, act="sigmoid")
    prediction = fluid.layers.fc(input=hidden, size=dictionary_size, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=words[-1]))
    return words, prediction, loss


def sampled_network(negatives, embedding_size=32, hidden_size=256):
    """(fed variables, loss) of the model with negative sampling: tables have a row for any word."""
    words = [fluid.layers.data(name=name, shape=[1], dtype="int64") for name in WORDS]
    others = fluid.layers.data(name="otherw", shape=[negatives, 1], dtype="int64")
    vectors = [_rows(word, embedding_size, "shared_w") for word in words[:-1]]
    hidden = fluid.layers.fc(input=fluid.layers.concat(input=vectors, axis=1), size=hidden_size, act="sigmoid")
    guess = fluid.layers.fc(input=hidden, size=embedding_size)
    right = fluid.layers.reduce_sum(guess * _rows(words[-1], embedding_size, "next_w"), dim=1, keep_dim=True)
    wrong = fluid.layers.reduce_sum(fluid.layers.unsqueeze(guess, [1]) * _rows(others, embedding_size, "next_w"), dim=2)
    cost = fluid.layers.sigmoid_cross_entropy_with_logits(right, right * 0.0 + 1.0)
    costs = fluid.layers.sigmoid_cross_entropy_with_logits(wrong, wrong * 0.0)
    loss = fluid.layers.mean(cost + fluid.layers.reduce_sum(costs, dim=1, keep_dim=True))
    return [*words, others], loss


def _rows(ids, embedding_size, name):
    return fluid.contrib.layers.sparse_embedding(
        ids, [1024, embedding_size], param_attr=fluid.ParamAttr(name, initializer=fluid.initializer.Uniform(-0.1, 0.1)))


def with_negatives(reader, negatives, words, seed):
    """Samples of a reader with so many other words each, the same in every process for the same seed."""
    def read():
        draw = np.random.default_rng([61, seed])
        for sample in reader():
            yield *sample, draw.integers(0, words, (negatives, 1))
    return read


def main(argv=None):
    """Train; returns 0 when the last hundred batches were better than the first, else 1."""
    options = _options(argv)
    job = training.job(options)
    dictionary = paddle.dataset.imikolov.build_dict(min_word_freq=options.least_frequency)
    if options.negatives:
        _refuse_equal_workers(options)
        words, loss = sampled_network(options.negatives, options.embedding_size, options.hidden_size)
    else:
        words, _, loss = network(len(dictionary), options.embedding_size, options.hidden_size, not options.dense)
    job.minimize(fluid.optimizer.Adam(learning_rate=options.learning_rate, lazy_mode=bool(options.negatives)), loss)
    if job.is_server:
        return job.serve()
    samples = job.share(paddle.dataset.imikolov.train(dictionary, len(WORDS)))
    if options.negatives:
        samples = with_negatives(samples, options.negatives, len(dictionary), job.worker)
    batches = paddle.batch(samples, batch_size=options.batch_size)
    if options.batches:
        batches = paddle.reader.firstn(batches, options.batches)

    place = fluid.CPUPlace()
    feeder = fluid.DataFeeder(feed_list=words, place=place)
    exe = fluid.Executor(place)
    job.start(exe)
    progress, losses = Progress(job.name), []
    for number in range(options.passes):
        for batch in batches():
            value, = exe.run(job.program, feed=feeder.feed(batch), fetch_list=[loss])
            losses.append(float(value))
            progress.step(f"pass {number + 1}/{options.passes}  loss {losses[-1]:.4f}", len(batch))
    job.finish(exe)
    few = min(100, max(1, len(losses) // 2))
    first, last = sum(losses[:few]) / few, sum(losses[-few:]) / few
    progress.end(f"loss of the first {few} batches {first:.4f}, of the last {last:.4f}")
    return 0 if last < first else 1


def _refuse_equal_workers(options):
    if options.mode == training.COLLECTIVE:
        raise NotBuilt("--negatives: tables that take any word are kept by servers, or by one process alone: train "
                       "with servers (--mode sync)")


def _options(argv):
    parser = CommandLine(prog="python -m fleet_mpi.examples.word2vec",
                         description=__doc__.splitlines()[0],
                         formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--passes", type=whole, default=2, help="passes over the text")
    parser.add_argument("--batches", type=int, default=0, metavar="N", help="only the first N of a pass; 0: all")
    parser.add_argument("--batch-size", type=whole, default=100)
    parser.add_argument("--learning-rate", type=float, default=0.002)
    parser.add_argument("--embedding-size", type=whole, default=32)
    parser.add_argument("--hidden-size", type=whole, default=256)
    parser.add_argument("--least-frequency", type=int, default=50, help="rarer words count as unknown")
    parser.add_argument("--negatives", type=int, default=0, metavar="N",
                        help="tell the next word from N others, with tables that grow; 0: from all words")
    parser.add_argument("--dense", action="store_true", help="gradients of the whole table instead of its rows")
    training.add_options(parser, api="fleet")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
