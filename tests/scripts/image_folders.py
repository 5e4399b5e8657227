"""Folders of images made on the spot, a pipeline of transforms over them, and a small classifier, as tutorials for own
data do."""

import os
import random
import tempfile

import numpy as np
import paddle
import paddle.vision.transforms as T
from paddle.vision.datasets import DatasetFolder, ImageFolder
from PIL import Image

paddle.enable_static()
paddle.seed(5)
random.seed(5)
np.random.seed(5)

CLASSES = {'blue': (30, 40, 200), 'green': (30, 190, 40), 'red': (200, 40, 30)}


def make_folder(root, count):
    for name, colour in CLASSES.items():
        os.makedirs(os.path.join(root, name))
        for number in range(count):
            noise = np.random.randint(-30, 31, (40, 48, 3))
            pixels = np.clip(np.array(colour) + noise, 0, 255).astype('uint8')
            Image.fromarray(pixels).save(os.path.join(root, name, '%03d.png' % number))


class AddNoise(T.BaseTransform):
    """A transform of one's own."""

    def __init__(self, level, keys=None):
        super().__init__(keys)
        self.level = level

    def _apply_image(self, img):
        return img + self.level * np.random.randn(*img.shape).astype('float32')


train_transform = T.Compose([
    T.RandomResizedCrop(20, scale=(0.3, 1.0)), T.RandomHorizontalFlip(), T.RandomVerticalFlip(0.3),
    T.ColorJitter(0.2, 0.2, 0.2, 0.02), T.RandomRotation(20), T.Pad(2, padding_mode='edge'), T.RandomCrop(20),
    T.Transpose(), T.Normalize(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]), AddNoise(0.05)])
test_transform = T.Compose([T.Resize(24), T.CenterCrop(20), T.ToTensor(), T.Normalize(0.5, 0.5)])

with tempfile.TemporaryDirectory() as folder:
    make_folder(os.path.join(folder, 'train'), 20)
    make_folder(os.path.join(folder, 'test'), 6)
    train = DatasetFolder(os.path.join(folder, 'train'), transform=train_transform)
    test = DatasetFolder(os.path.join(folder, 'test'), transform=test_transform)
    images = ImageFolder(os.path.join(folder, 'test'), transform=T.Compose([T.Grayscale(), T.ToTensor()]))
    grey, = images[0]
    print("classes=%d files=%d images=%d grey=%d" % (len(train.classes), len(train), len(images), grey.shape[0]))

    x = paddle.static.data('x', [None, 3, 20, 20], 'float32')
    y = paddle.static.data('y', [None], 'int64')
    net = paddle.vision.models.resnet18(pretrained=False, num_classes=3)
    logits = net(x)
    loss = paddle.nn.functional.cross_entropy(logits, paddle.reshape(y, [-1, 1]))
    metric = paddle.metric.Accuracy()
    correct = metric.compute(logits, y)
    test_program = paddle.static.default_main_program().clone(for_test=True)
    paddle.optimizer.Momentum(0.01, 0.9, parameters=net.parameters()).minimize(loss)
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())

    losses = []
    for epoch in range(6):
        for batch in paddle.io.DataLoader(train, batch_size=12, shuffle=True, drop_last=True, return_list=True):
            cost, = exe.run(feed={'x': batch[0], 'y': batch[1]}, fetch_list=[loss])
            losses.append(float(cost[0]))
    for image, label in paddle.io.DataLoader(test, batch_size=9, return_list=True):
        metric.update(exe.run(test_program, feed={'x': image, 'y': label}, fetch_list=[correct])[0])
    print("first=%f last=%f accuracy=%f" % (losses[0], np.mean(losses[-5:]), metric.accumulate()))
