"""A convolutional network with the 2.x names and collective fleet, in the manner of FleetX's resnet scripts."""

import os

import numpy as np
import paddle
import paddle.distributed.fleet as fleet
import paddle.static as static

paddle.enable_static()
paddle.vision.set_image_backend("cv2")

CLASSES = 5
BATCH = 16


def optimizer_setting(parameter_list=None):
    return paddle.optimizer.Momentum(learning_rate=paddle.optimizer.lr.PiecewiseDecay([20, 40], [0.05, 0.02, 0.01]),
                                     momentum=0.9, weight_decay=paddle.regularizer.L2Decay(1e-4),
                                     parameters=parameter_list)


def reader_decorator(reader):
    def __reader__():
        for image, label in reader():
            yield np.array(image).astype("float32").reshape(3, 12, 12), np.array(label).astype("int64").reshape(1)

    return __reader__


def get_train_loader(feed_list, place):
    centres = np.random.RandomState(1).randn(CLASSES, 3 * 12 * 12)

    def reader():
        rng = np.random.RandomState(2)
        for _ in range(BATCH * 50):
            label = rng.randint(CLASSES)
            yield centres[label] + 0.5 * rng.randn(3 * 12 * 12), label

    loader = paddle.io.DataLoader.from_generator(capacity=16, use_double_buffer=True, feed_list=feed_list,
                                                 iterable=True)
    loader.set_sample_list_generator(paddle.batch(reader_decorator(reader), batch_size=BATCH, drop_last=True), place)
    return loader


class ConvBNLayer(paddle.nn.Layer):
    """Convolution, batch norm, activation."""

    def __init__(self, num_channels, num_filters, filter_size, stride=1, groups=1, act=None):
        super().__init__()
        self._conv = paddle.nn.Conv2D(in_channels=num_channels, out_channels=num_filters, kernel_size=filter_size,
                                      stride=stride, padding=(filter_size - 1) // 2, groups=groups,
                                      weight_attr=None, bias_attr=False)
        self._batch_norm = paddle.nn.BatchNorm(num_filters, act=act)

    def forward(self, inputs):
        return self._batch_norm(self._conv(inputs))


class Net(paddle.nn.Layer):
    """Two convolutions with a short cut, pooling, one dense layer."""

    def __init__(self):
        super().__init__()
        self.conv = ConvBNLayer(3, 8, 3, act="relu")
        self.pool = paddle.nn.MaxPool2D(kernel_size=3, stride=2, padding=1)
        self.conv1 = ConvBNLayer(8, 8, 3, groups=2, act="relu")
        self.conv2 = ConvBNLayer(8, 8, 1)
        self.avg = paddle.nn.AdaptiveAvgPool2D(3)
        self.drop = paddle.nn.Dropout(p=0.1)
        self.out = paddle.nn.Linear(8 * 9, CLASSES, weight_attr=paddle.ParamAttr(
            initializer=paddle.nn.initializer.Uniform(-0.1, 0.1)))

    def forward(self, inputs):
        y = self.pool(self.conv(inputs))
        y = paddle.nn.functional.relu(paddle.add(x=y, y=self.conv2(self.conv1(y))))
        y = paddle.reshape(self.avg(y), shape=[-1, 8 * 9])
        return self.out(self.drop(y))


def main():
    image = static.data(name="x", shape=[None, 3, 12, 12], dtype="float32")
    label = static.data(name="y", shape=[None, 1], dtype="int64")
    model = Net()
    predict = model(image)
    avg_cost = paddle.mean(paddle.nn.functional.cross_entropy(input=predict, label=label))
    acc_top1 = paddle.metric.accuracy(input=predict, label=label, k=1)
    place = paddle.CPUPlace() if not paddle.is_compiled_with_cuda() \
        else paddle.CUDAPlace(int(os.environ.get("FLAGS_selected_gpus", 0)))
    loader = get_train_loader([image, label], place)

    strategy = fleet.DistributedStrategy()
    exec_strategy = static.ExecutionStrategy()
    exec_strategy.num_threads = 2
    exec_strategy.num_iteration_per_drop_scope = 100
    strategy.execution_strategy = exec_strategy
    build_strategy = static.BuildStrategy()
    build_strategy.enable_inplace = False
    strategy.build_strategy = build_strategy
    fleet.init(is_collective=True, strategy=strategy)
    optimizer = fleet.distributed_optimizer(optimizer_setting())
    optimizer.minimize(avg_cost)

    exe = static.Executor(place)
    print("rank=%d" % fleet.worker_index())
    exe.run(static.default_startup_program())
    losses = []
    for epoch in range(2):
        for step, data in enumerate(loader()):
            loss, acc1 = exe.run(static.default_main_program(), feed=data,
                                 fetch_list=[avg_cost.name, acc_top1.name])
            losses.append(loss[0])
            if step % 25 == 0:
                print("[Epoch %d, batch %d] loss: %.5f, acc1: %.5f" % (epoch, step, loss, acc1))
    print("first=%f last=%f accuracy=%f" % (losses[0], np.mean(losses[-5:]), acc1))


if __name__ == "__main__":
    main()
