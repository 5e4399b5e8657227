"""Word vectors by skip-gram with negative sampling, batches from paddle.io's worker processes; no ``if __name__``
here."""

import numpy as np
import paddle
from paddle.io import BatchSampler, DataLoader, Dataset

paddle.enable_static()
VOCABULARY, DIM, NEGATIVES, WINDOW = 60, 16, 4, 2
rng = np.random.RandomState(7)
# A walk that likes to stay near: neighbours in the text are neighbours in number.
corpus = np.cumsum(rng.randint(-1, 2, 3000)) % VOCABULARY


class SkipGrams(Dataset):
    def __init__(self, words, window, negatives):
        super().__init__()
        self.words, self.window, self.negatives = words, window, negatives

    def __len__(self):
        return len(self.words) - 2 * self.window

    def __getitem__(self, idx):
        draw = np.random.RandomState(idx)
        center = self.words[idx + self.window]
        step = draw.choice([-2, -1, 1, 2])
        others = draw.randint(0, VOCABULARY, self.negatives)
        targets = np.concatenate([[self.words[idx + self.window + step]], others])
        label = np.array([1] + [0] * self.negatives, dtype="float32")
        return np.array([center], dtype="int64"), targets.astype("int64"), label


def net():
    center = paddle.static.data(name="center", shape=[None, 1], dtype="int64")
    targets = paddle.static.data(name="targets", shape=[None, NEGATIVES + 1], dtype="int64")
    label = paddle.static.data(name="label", shape=[None, NEGATIVES + 1], dtype="float32")
    uniform = paddle.nn.initializer.Uniform(-0.5 / DIM, 0.5 / DIM)
    inside = paddle.static.nn.embedding(center, [VOCABULARY, DIM],
                                        param_attr=paddle.ParamAttr(name="emb", initializer=uniform))
    outside = paddle.static.nn.embedding(targets, [VOCABULARY, DIM], param_attr=paddle.ParamAttr(
        name="emb_w", initializer=paddle.nn.initializer.Constant(value=0.0)))
    logits = paddle.sum(paddle.multiply(outside, paddle.expand(inside, [-1, NEGATIVES + 1, DIM])), axis=2)
    cost = paddle.fluid.layers.sigmoid_cross_entropy_with_logits(logits, label)
    return [center, targets, label], paddle.mean(paddle.sum(cost, axis=1))


paddle.static.default_startup_program().random_seed = 3
feeds, loss = net()
paddle.optimizer.Adam(learning_rate=0.02).minimize(loss)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())

dataset = SkipGrams(corpus, WINDOW, NEGATIVES)
loader = DataLoader(dataset, feed_list=feeds, places=paddle.CPUPlace(), return_list=False,
                    batch_sampler=BatchSampler(dataset, shuffle=True, batch_size=64, drop_last=True), num_workers=2)
costs = []
for epoch in range(4):
    for batch in loader():
        costs.append(float(exe.run(feed=batch, fetch_list=[loss])[0].reshape(-1)[0]))
table = paddle.static.global_scope().find_var("emb").get_tensor()
vectors = np.array(table) / np.linalg.norm(np.array(table), axis=1, keepdims=True)
near = np.mean([vectors[i] @ vectors[(i + 1) % VOCABULARY] for i in range(VOCABULARY)])
far = np.mean([vectors[i] @ vectors[(i + 30) % VOCABULARY] for i in range(VOCABULARY)])
print("batches=%d of=%d first=%f last=%f near=%f far=%f" % (len(costs), 4 * len(loader), costs[0], np.mean(costs[-20:]),
                                                            near, far))
