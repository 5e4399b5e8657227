"""2.x, static: short films of a moving dot classified by direction with volumes, then by a tree of classes."""

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

paddle.enable_static()
paddle.seed(7)


class Film(nn.Layer):
    def __init__(self, directions=4):
        super().__init__()
        self.conv1 = nn.Conv3D(1, 8, kernel_size=3, padding=1)
        self.pool = nn.MaxPool3D(kernel_size=2, stride=2)
        self.conv2 = nn.Conv3D(8, 16, kernel_size=[2, 3, 3], padding=[0, 1, 1], padding_mode="replicate")
        self.drop = nn.Dropout3D(p=0.1)
        self.mean = nn.AdaptiveAvgPool3D([1, 2, 2])
        self.out = nn.Linear(64, directions)

    def forward(self, film):
        x = self.pool(F.relu(self.conv1(film)))
        x = self.drop(F.relu(self.conv2(x)))
        features = paddle.flatten(self.mean(x), 1)
        return F.log_softmax(self.out(features)), features


def films(count, rng):
    steps = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])
    labels = rng.randint(0, 4, count)
    made = np.zeros((count, 1, 4, 8, 8), "float32")
    for i, label in enumerate(labels):
        place = rng.randint(3, 5, 2)
        for t in range(4):
            y, x = place + (t - 1) * steps[label]
            made[i, 0, t, y, x] = 1.0
    return made, labels.astype("int64")


film = paddle.static.data("film", [None, 1, 4, 8, 8])
label = paddle.static.data("label", [None], "int64")
net = Film()
scores, features = net(film)
loss = nn.NLLLoss()(scores, label)
right = paddle.mean(paddle.cast(paddle.equal(paddle.argmax(scores, axis=1), label), "float32"))
test_program = paddle.static.default_main_program().clone(for_test=True)

tree = nn.HSigmoidLoss(64, 4)
tree_loss = paddle.mean(tree(nn.AlphaDropout(0.1)(F.selu(features)), paddle.unsqueeze(label, 1)))
paddle.optimizer.Adam(learning_rate=0.01).minimize(loss + 0.1 * tree_loss)

exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
rng = np.random.RandomState(0)
for step in range(80):
    batch = films(32, rng)
    found = exe.run(feed={"film": batch[0], "label": batch[1]}, fetch_list=[loss, tree_loss])
    if step == 0:
        first = found
batch = films(200, rng)
accuracy, = exe.run(test_program, feed={"film": batch[0], "label": batch[1]}, fetch_list=[right.name])
print("parameters=%d first=%g last=%g" % (len(net.parameters()), first[0][0], found[0][0]))
print("tree_first=%g tree_last=%g accuracy=%g" % (first[1][0], found[1][0], accuracy[0]))
