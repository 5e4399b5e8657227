"""Ranking of documents by pairs (RankNet), in the manner of the models repository: six, plots, readers made of
partials."""

from __future__ import print_function

import functools

import numpy as np
import paddle
import paddle.fluid as fluid
import six
from paddle.utils.plot import Ploter

FEATURES = 46


def score(document):
    """The same small network for both documents of a pair."""
    hidden = fluid.layers.fc(input=document, size=16, act="tanh", param_attr="rank_w1", bias_attr="rank_b1")
    return fluid.layers.fc(input=hidden, size=1, param_attr="rank_w2", bias_attr=False)


def reader_creator(dataset):
    def reader():
        for label, left, right in dataset():
            yield left.astype("float32"), right.astype("float32"), label.astype("float32")
    return reader


def main():
    fluid.default_startup_program().random_seed = 3
    label = fluid.layers.data(name="label", shape=[1], dtype="float32")
    left = fluid.layers.data(name="left", shape=[FEATURES], dtype="float32")
    right = fluid.layers.data(name="right", shape=[FEATURES], dtype="float32")
    left_score, right_score = score(left), score(right)
    cost = fluid.layers.mean(fluid.layers.rank_loss(label, left_score, right_score))
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(learning_rate=0.01).minimize(cost)

    train = reader_creator(functools.partial(paddle.dataset.mq2007.train, format="pairwise"))
    train_reader = paddle.batch(paddle.reader.shuffle(train, buf_size=5000), batch_size=64)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=[left, right, label], place=fluid.CPUPlace())
    ploter = Ploter("Train cost", "Test cost")
    costs, pairs = [], 0
    for epoch in six.moves.range(2):
        for batch in train_reader():
            pairs += len(batch)
            costs.append(exe.run(feed=feeder.feed(batch), fetch_list=[cost])[0][0])
        ploter.append("Train cost", epoch, costs[-1])
    print("pairs=%d first=%f last=%f" % (pairs, costs[0], np.mean(costs[-10:])))

    right_order, of = 0, 0
    for batch in paddle.batch(reader_creator(paddle.dataset.mq2007.test), batch_size=256)():
        better, worse = exe.run(test_program, feed=feeder.feed(batch), fetch_list=[left_score, right_score])
        right_order, of = right_order + (better > worse).sum(), of + len(batch)
    points = len(ploter.__plot_data__["Train cost"].value)
    print("right=%f points=%d" % (right_order / of, points))
    assert all(isinstance(word, six.string_types) for word in ("six", u"six"))


if __name__ == "__main__":
    main()
