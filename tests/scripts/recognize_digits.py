"""Digits with a LeNet, in the manner of the dist_mnist test models: Momentum with a stepwise learning rate."""

from __future__ import print_function

import numpy as np
import paddle
import paddle.fluid as fluid

SEED = 1
BATCH = 50

fluid.default_startup_program().random_seed = SEED
fluid.default_main_program().random_seed = SEED


def cnn_model(data):
    conv_pool_1 = fluid.nets.simple_img_conv_pool(
        input=data, filter_size=5, num_filters=8, pool_size=2, pool_stride=2, act="relu",
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(value=0.01)))
    conv_pool_2 = fluid.nets.simple_img_conv_pool(
        input=conv_pool_1, filter_size=5, num_filters=16, pool_size=2, pool_stride=2, act="relu",
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.Normal(loc=0.0, scale=0.08, seed=SEED)))
    input_shape = conv_pool_2.shape
    param_shape = [int(np.prod(input_shape[1:]))] + [10]
    scale = (2.0 / (param_shape[0] ** 2 * 10)) ** 0.5 * 10
    return fluid.layers.fc(
        input=conv_pool_2, size=10, act="softmax",
        param_attr=fluid.param_attr.ParamAttr(
            initializer=fluid.initializer.NormalInitializer(loc=0.0, scale=scale, seed=SEED)))


def get_model():
    images = fluid.layers.data(name="pixel", shape=[1, 28, 28], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    predict = cnn_model(images)
    cost = fluid.layers.cross_entropy(input=predict, label=label)
    avg_cost = fluid.layers.mean(x=cost)

    batch_size_tensor = fluid.layers.create_tensor(dtype="int64")
    batch_acc = fluid.layers.accuracy(input=predict, label=label, total=batch_size_tensor)
    inference_program = fluid.default_main_program().clone(for_test=True)

    lr = fluid.layers.piecewise_decay(boundaries=[25, 45], values=[0.05, 0.02, 0.01])
    opt = fluid.optimizer.Momentum(learning_rate=lr, momentum=0.9)
    opt.minimize(avg_cost)
    train_reader = paddle.batch(paddle.reader.firstn(paddle.dataset.mnist.train(), 3000), batch_size=BATCH)
    test_reader = paddle.batch(paddle.reader.firstn(paddle.dataset.mnist.test(), 510), batch_size=100)
    return inference_program, avg_cost, batch_acc, batch_size_tensor, lr, predict, train_reader, test_reader


def main():
    test_program, avg_cost, batch_acc, batch_size, lr, predict, train_reader, test_reader = get_model()
    place = fluid.CUDAPlace(0) if fluid.core.is_compiled_with_cuda() else fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())

    feed_var_list = [var for var in fluid.default_main_program().global_block().vars.values() if var.is_data]
    feeder = fluid.DataFeeder(feed_var_list, place)
    losses = []
    for step, data in enumerate(train_reader()):
        loss, acc, size, rate = exe.run(fluid.default_main_program(), feed=feeder.feed(data),
                                        fetch_list=[avg_cost, batch_acc, batch_size, lr])
        assert size[0] == BATCH and loss.shape == (1,) and acc.shape == (1,), (size, loss.shape, acc.shape)
        losses.append(loss[0])
        if step % 20 == 0:
            print("step %d, loss %f, accuracy %.3f, rate %.4f" % (step, loss, acc, rate))

    accuracy = fluid.metrics.Accuracy()
    for data in test_reader():
        acc, weight = exe.run(test_program, feed=feeder.feed(data), fetch_list=[batch_acc, batch_size])
        accuracy.update(value=acc, weight=weight)
    print("first=%f last=%f rate=%f" % (losses[0], np.mean(losses[-5:]), rate))
    print("test_accuracy=%f" % accuracy.eval())


if __name__ == "__main__":
    main()
