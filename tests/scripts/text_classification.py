"""Film reviews in the manner of dist_text_classification and the sentiment chapter: convolution over words."""

import numpy as np
import paddle
import paddle.fluid as fluid

CLASS_DIM, EMB_DIM, HID_DIM = 2, 16, 16
BATCH_SIZE = 32


def convolution_net(data, label, input_dim):
    emb = fluid.layers.embedding(input=data, size=[input_dim, EMB_DIM], is_sparse=True)
    conv_3 = fluid.nets.sequence_conv_pool(input=emb, num_filters=HID_DIM, filter_size=3, act="tanh",
                                           pool_type="sqrt")
    conv_4 = fluid.nets.sequence_conv_pool(input=emb, num_filters=HID_DIM, filter_size=4, act="tanh",
                                           pool_type="max", param_attr=fluid.ParamAttr(name="conv_4_w"))
    prediction = fluid.layers.fc(input=[conv_3, conv_4], size=CLASS_DIM, act="softmax")
    avg_cost = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))
    accuracy = fluid.layers.accuracy(input=prediction, label=label)
    return avg_cost, accuracy, prediction


def main():
    word_dict = paddle.dataset.imdb.word_dict()
    train_reader = paddle.batch(
        paddle.reader.shuffle(paddle.dataset.imdb.train(word_dict), buf_size=25000), batch_size=BATCH_SIZE)
    main_program, startup = fluid.Program(), fluid.Program()
    main_program.random_seed = startup.random_seed = 90
    with fluid.program_guard(main_program, startup):
        data = fluid.layers.data(name="words", shape=[1], dtype="int64", lod_level=1)
        label = fluid.layers.data(name="label", shape=[1], dtype="int64")
        avg_cost, accuracy, prediction = convolution_net(data, label, input_dim=len(word_dict))
        test_program = main_program.clone(for_test=True)
        lr = fluid.layers.exponential_decay(learning_rate=0.1, decay_steps=10, decay_rate=0.8, staircase=True)
        opt = fluid.optimizer.Adagrad(learning_rate=lr, regularization=fluid.regularizer.L2DecayRegularizer(
            regularization_coeff=1e-5))
        opt.minimize(avg_cost)

        place = fluid.CPUPlace()
        exe = fluid.Executor(place)
        feeder = fluid.DataFeeder(feed_list=[data, label], place=place)
        exe.run(startup)
        costs, rates = [], []
        for batch_id, batch in enumerate(train_reader()):
            cost, acc, rate = exe.run(main_program, feed=feeder.feed(batch), fetch_list=[avg_cost, accuracy, lr])
            costs.append(cost[0])
            rates.append(float(rate[0]))
            if batch_id == 40:
                break
        print("first=%f last=%f" % (costs[0], np.mean(costs[-5:])))
        print("rate0=%.4f rate9=%.4f rate10=%.4f rate40=%.5f" % (rates[0], rates[9], rates[10], rates[40]))

        test_reader = paddle.batch(paddle.dataset.imdb.test(word_dict), batch_size=100)
        accs = [float(exe.run(test_program, feed=feeder.feed(batch), fetch_list=[accuracy])[0])
                for batch in paddle.reader.firstn(test_reader, 5)()]
        print("test_accuracy=%f" % np.mean(accs))

        reviews = [[1, 5, 9, 2, 4], [3, 3, 8]]
        words = fluid.create_lod_tensor(np.array(sum(reviews, []), dtype="int64").reshape(-1, 1),
                                        [[len(review) for review in reviews]], place)
        rows, = exe.run(test_program, feed={"words": words, "label": np.zeros((2, 1), dtype="int64")},
                        fetch_list=[prediction])
        print("rows=%d" % len(rows))


if __name__ == "__main__":
    main()
