"""Recognise digits with paddle.Model: fit, evaluate, save, load and predict, in the manner of the 2.0 quick start."""

import os
import tempfile

import numpy as np
import paddle
import paddle.nn as nn
from paddle.static import InputSpec
from paddle.vision.transforms import Normalize

paddle.enable_static()
paddle.seed(3)

transform = Normalize(mean=[127.5], std=[127.5], data_format='CHW')
train_dataset = paddle.io.Subset(paddle.vision.datasets.MNIST(mode='train', transform=transform), range(1920))
test_dataset = paddle.io.Subset(paddle.vision.datasets.MNIST(mode='test', transform=transform), range(512))


class LossHistory(paddle.callbacks.Callback):
    def __init__(self):
        super(LossHistory, self).__init__()
        self.losses, self.epochs = [], 0

    def on_train_batch_end(self, step, logs=None):
        self.losses.append(logs['loss'][0])

    def on_epoch_end(self, epoch, logs=None):
        self.epochs += 1


def build():
    network = nn.Sequential(nn.Conv2D(1, 6, 3, padding=1, padding_mode='reflect'), nn.BatchNorm2D(6), nn.ReLU(),
                            nn.MaxPool2D(2, 2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(6 * 14 * 14, 10))
    inputs = InputSpec([None, 1, 28, 28], 'float32', 'image')
    labels = InputSpec([None, 1], 'int64', 'label')
    model = paddle.Model(network, inputs, labels)
    scheduler = paddle.optimizer.lr.StepDecay(learning_rate=0.01, step_size=40, gamma=0.5)
    optim = paddle.optimizer.Adam(learning_rate=scheduler, parameters=model.parameters())
    model.prepare(optim, nn.CrossEntropyLoss(), paddle.metric.Accuracy(topk=(1, 2)))
    return model, scheduler


model, scheduler = build()
sizes = model.summary()
history = LossHistory()
before = model.evaluate(test_dataset, batch_size=64, verbose=0)
with tempfile.TemporaryDirectory() as folder:
    model.fit(train_dataset, test_dataset, epochs=2, batch_size=64, save_dir=folder, log_freq=10, callbacks=[history])
    saved = len([name for name in os.listdir(folder) if name.endswith('.pdparams')])
    result = model.evaluate(test_dataset, batch_size=64, verbose=0)
    predictions = model.predict(test_dataset, batch_size=64, stack_outputs=True, verbose=0)

    other, _ = build()
    other.load(os.path.join(folder, 'final'))
    again = other.predict(test_dataset, batch_size=64, stack_outputs=True, verbose=0)
    one_step = other.train_batch([np.zeros((2, 1, 28, 28), 'float32')], [np.zeros((2, 1), 'int64')])

    model.save(os.path.join(folder, 'inference'), training=False)
    exe = paddle.static.Executor(paddle.CPUPlace())
    program, feeds, fetches = paddle.static.load_inference_model(os.path.join(folder, 'inference'), exe)
    images = np.stack([test_dataset[i][0] for i in range(64)])
    inferred, = exe.run(program, feed={feeds[0]: images}, fetch_list=fetches)

labels = np.array([test_dataset[i][1] for i in range(512)]).reshape(-1)
right = (predictions[0].argmax(1) == labels).mean()
print('parameters=%d steps=%d epochs=%d saved=%d' % (sizes['total_params'], len(history.losses), history.epochs, saved))
print('first=%f last=%f before=%f top1=%f top2=%f right=%f rate=%f' % (
    history.losses[0], np.mean(history.losses[-5:]), before['acc_top1'], result['acc_top1'], result['acc_top2'], right,
    scheduler.last_lr))
print('same=%d inferred=%f one_step=%d' % (np.array_equal(predictions[0], again[0]),
                                           np.abs(inferred - predictions[0][:64]).max(), len(one_step)))
