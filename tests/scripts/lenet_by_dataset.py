"""LeNet on digits with paddle.vision: transforms, datasets by number, a DataLoader, and metric.Accuracy, in static
mode."""

import random

import numpy as np
import paddle
from paddle.metric import Accuracy
from paddle.vision.datasets import MNIST
from paddle.vision.models import LeNet
from paddle.vision.transforms import Compose, Normalize, RandomRotation, ToTensor

paddle.enable_static()
paddle.seed(7)
random.seed(7)
np.random.seed(7)

BATCH_SIZE = 64

train_transform = Compose([RandomRotation(8), ToTensor(), Normalize(mean=[0.5], std=[0.5], data_format='CHW')])
test_transform = Compose([ToTensor(), Normalize(mean=[0.5], std=[0.5], data_format='CHW')])
train_dataset = MNIST(mode='train', transform=train_transform)
test_dataset = MNIST(mode='test', transform=test_transform)
train_dataset = paddle.io.Subset(train_dataset, range(2560))
test_dataset = paddle.io.Subset(test_dataset, range(512))


def evaluate(exe, program, feeds, fetch, metric):
    metric.reset()
    loader = paddle.io.DataLoader(test_dataset, feed_list=feeds, batch_size=BATCH_SIZE, return_list=False)
    for data in loader:
        correct, = exe.run(program, feed=data, fetch_list=[fetch])
        metric.update(correct)
    return metric.accumulate()


def main():
    main_program, startup = paddle.static.Program(), paddle.static.Program()
    main_program.random_seed = startup.random_seed = 7
    metric = Accuracy(topk=(1, 2))
    with paddle.static.program_guard(main_program, startup):
        image = paddle.static.data(name='image', shape=[None, 1, 28, 28], dtype='float32')
        label = paddle.static.data(name='label', shape=[None, 1], dtype='int64')
        net = LeNet(num_classes=10)
        logits = net(image)
        loss = paddle.nn.functional.cross_entropy(logits, label)
        correct = metric.compute(logits, label)
        test_program = main_program.clone(for_test=True)
        paddle.optimizer.Adam(learning_rate=0.002, parameters=net.parameters()).minimize(loss)

    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(startup)
    before = evaluate(exe, test_program, [image, label], correct, metric)
    loader = paddle.io.DataLoader(train_dataset, feed_list=[image, label], batch_size=BATCH_SIZE, shuffle=True,
                                  drop_last=True, return_list=False)
    losses = []
    metric.reset()
    for epoch in range(2):
        for step, data in enumerate(loader()):
            cost, hits = exe.run(main_program, feed=data, fetch_list=[loss, correct])
            top1, top2 = metric.update(hits)
            losses.append(float(cost[0]))
            if step % 20 == 0:
                print("epoch %d step %d loss %.4f %s" % (epoch, step, cost, dict(zip(metric.name(), (top1, top2)))))
    train_top1 = metric.accumulate()[0]
    after = evaluate(exe, test_program, [image, label], correct, metric)
    print("first=%f last=%f before=%f test_top1=%f test_top2=%f train_top1=%f steps=%d" % (
        losses[0], np.mean(losses[-10:]), before[0], after[0], after[1], train_top1, len(losses)))


if __name__ == '__main__':
    main()
