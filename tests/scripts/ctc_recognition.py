"""Recognising sequences in the manner of the CTC models: warpctc, greedy decoding, the edit distance as a metric."""

import numpy as np
import paddle
import paddle.fluid as fluid

NUM_CLASSES = 6
BLANK = NUM_CLASSES


def reader():
    """Columns of a text line, 8 numbers each; every character covers two or three of them."""
    rng = np.random.RandomState(5)
    shapes = np.random.RandomState(0).rand(NUM_CLASSES, 8)
    for _ in range(600):
        label = rng.randint(0, NUM_CLASSES, rng.randint(2, 6))
        columns = []
        for one in label:
            columns += [shapes[one]] * rng.randint(2, 4) + [np.zeros(8)]
        yield (np.array(columns) + rng.rand(len(columns), 8) * 0.2).astype("float32"), label.tolist()


def ctc_net():
    pixel = fluid.layers.data(name="pixel", shape=[8], dtype="float32", lod_level=1)
    label = fluid.layers.data(name="label", shape=[1], dtype="int32", lod_level=1)
    hidden = fluid.layers.fc(input=pixel, size=32, act="relu")
    out = fluid.layers.fc(input=hidden, size=NUM_CLASSES + 1)
    cost = fluid.layers.warpctc(input=out, label=label, blank=BLANK, norm_by_times=True)
    sum_cost = fluid.layers.reduce_sum(cost)
    decoded = fluid.layers.ctc_greedy_decoder(input=out, blank=BLANK)
    error, seq_num = fluid.layers.edit_distance(input=decoded, label=fluid.layers.cast(label, "int64"),
                                                normalized=False)
    return [pixel, label], sum_cost, error, seq_num


def main():
    fluid.default_startup_program().random_seed = 2
    feeds, sum_cost, error, seq_num = ctc_net()
    inference_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Momentum(learning_rate=0.1, momentum=0.9).minimize(sum_cost)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=feeds, place=fluid.CPUPlace())
    costs = []
    for _ in range(4):
        for data in paddle.batch(reader, 20)():
            costs.append(exe.run(feed=feeder.feed(data), fetch_list=[sum_cost])[0].item())
    metric = fluid.metrics.EditDistance("edit distance")
    for data in paddle.batch(paddle.reader.firstn(reader, 100), 20)():
        metric.update(*exe.run(inference_program, feed=feeder.feed(data), fetch_list=[error, seq_num]))
    distance, wrong = metric.eval()
    print("first=%f last=%f distance=%f wrong=%f" % (costs[0], np.mean(costs[-10:]), distance, wrong))


if __name__ == "__main__":
    main()
