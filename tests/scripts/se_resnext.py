"""Images in the manner of dist_se_resnext: grouped convolutions, squeeze and excitation, a cosine rate by hand."""

import math

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers.ops as ops
from paddle.fluid.initializer import init_on_cpu
from paddle.fluid.layers.learning_rate_scheduler import _decay_step_counter

fluid.default_startup_program().random_seed = 1
fluid.default_main_program().random_seed = 1


class SE_ResNeXt:
    """A small network with the original's block."""

    def __init__(self, cardinality=4, reduction_ratio=4):
        self.cardinality = cardinality
        self.reduction_ratio = reduction_ratio

    def net(self, input, class_dim):
        conv = self.conv_bn_layer(input=input, num_filters=16, filter_size=3, stride=1, act="relu")
        conv = fluid.layers.pool2d(input=conv, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max")
        for block, stride in ((16, 1), (32, 2)):
            conv = self.bottleneck_block(input=conv, num_filters=block, stride=stride)
        pool = fluid.layers.pool2d(input=conv, pool_size=7, pool_type="avg", global_pooling=True)
        drop = fluid.layers.dropout(x=pool, dropout_prob=0.2, seed=1)
        stdv = 1.0 / math.sqrt(drop.shape[1] * 1.0)
        return fluid.layers.fc(input=drop, size=class_dim, act="softmax",
                               param_attr=fluid.ParamAttr(initializer=fluid.initializer.Uniform(-stdv, stdv)))

    def shortcut(self, input, ch_out, stride):
        if input.shape[1] != ch_out or stride != 1:
            return self.conv_bn_layer(input, ch_out, 1 if stride == 1 else 3, stride)
        return input

    def bottleneck_block(self, input, num_filters, stride):
        conv0 = self.conv_bn_layer(input=input, num_filters=num_filters, filter_size=1, act="relu")
        conv1 = self.conv_bn_layer(input=conv0, num_filters=num_filters, filter_size=3, stride=stride,
                                   groups=self.cardinality, act="relu")
        conv2 = self.conv_bn_layer(input=conv1, num_filters=num_filters * 2, filter_size=1, act=None)
        scale = self.squeeze_excitation(input=conv2, num_channels=num_filters * 2)
        short = self.shortcut(input, num_filters * 2, stride)
        return fluid.layers.elementwise_add(x=short, y=scale, act="relu")

    def conv_bn_layer(self, input, num_filters, filter_size, stride=1, groups=1, act=None):
        conv = fluid.layers.conv2d(input=input, num_filters=num_filters, filter_size=filter_size, stride=stride,
                                   padding=(filter_size - 1) // 2, groups=groups, act=None, bias_attr=False,
                                   param_attr=fluid.ParamAttr(initializer=fluid.initializer.MSRA()))
        return fluid.layers.batch_norm(input=conv, act=act)

    def squeeze_excitation(self, input, num_channels):
        pool = fluid.layers.pool2d(input=input, pool_size=0, pool_type="avg", global_pooling=True)
        pool = fluid.layers.reshape(x=pool, shape=[-1, num_channels])
        squeeze = fluid.layers.fc(input=pool, size=num_channels // self.reduction_ratio, act="relu")
        excitation = fluid.layers.fc(input=squeeze, size=num_channels, act="sigmoid")
        return fluid.layers.elementwise_mul(x=input, y=excitation, axis=0)


def cosine_by_hand(learning_rate, step_each_epoch, epochs):
    """The learning rate of epoch e: half of (1 + cos(pi e / epochs)) of the first."""
    global_step = _decay_step_counter()
    with fluid.default_main_program()._lr_schedule_guard():
        with init_on_cpu():
            epoch = ops.floor(global_step / step_each_epoch)
            decayed_lr = learning_rate * (ops.cos(epoch * (math.pi / epochs)) + 1) / 2
    return decayed_lr


def main():
    image = fluid.layers.data(name="data", shape=[3, 16, 16], dtype="float32")
    label = fluid.layers.data(name="int64", shape=[1], dtype="int64")
    out = SE_ResNeXt().net(input=image, class_dim=4)
    cost = fluid.layers.cross_entropy(input=out, label=label)
    avg_cost = fluid.layers.mean(x=cost)
    acc_top1 = fluid.layers.accuracy(input=out, label=label, k=1)
    acc_top2 = fluid.layers.accuracy(input=out, label=label, k=2)
    test_program = fluid.default_main_program().clone(for_test=True)

    lr = cosine_by_hand(0.05, step_each_epoch=10, epochs=4)
    optimizer = fluid.optimizer.Momentum(learning_rate=lr, momentum=0.9,
                                         regularization=fluid.regularizer.L2Decay(1e-4))
    optimizer.minimize(avg_cost)

    rng = np.random.RandomState(0)
    centres = rng.randn(4, 3, 16, 16).astype("float32")

    def reader():
        for _ in range(16 * 40):
            kind = rng.randint(4)
            yield centres[kind] + 0.5 * rng.randn(3, 16, 16), kind

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=[image, label], place=place)
    losses, rates = [], []
    for batch in paddle.batch(reader, batch_size=16)():
        loss, rate = exe.run(feed=feeder.feed(batch), fetch_list=[avg_cost, lr])
        losses.append(loss[0])
        rates.append(float(rate))
    tested = exe.run(test_program, feed=feeder.feed(batch), fetch_list=[acc_top1, acc_top2])
    print("first=%f last=%f" % (np.mean(losses[:3]), np.mean(losses[-5:])))
    print("rate0=%.5f rate10=%.5f rate39=%.5f" % (rates[0], rates[10], rates[39]))
    print("test_top1=%f test_top2=%f" % tuple(tested))
    again = exe.run(test_program, feed=feeder.feed(batch), fetch_list=[out])[0]
    same = exe.run(test_program, feed=feeder.feed(batch), fetch_list=[out])[0]
    assert (again == same).all(), "a test program must not drop anything at random"


if __name__ == "__main__":
    main()
