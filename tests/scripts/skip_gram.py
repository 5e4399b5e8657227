"""Skip-grams with negative sampling in 2.x style: a paddle.io dataset, two tables, products, sigmoid losses.

With plain SGD on a mean over the batch the cost stays near 2 ln 2 for hundreds of steps. That is no fault: both tables
start small, each is the other's gradient, and a row gets 1 / batch of the rate. The same steps in numpy show it.
"""

import numpy as np
import paddle
import paddle.nn.functional as F

VOCABULARY, WIDTH, NEGATIVES, BATCH_SIZE = 300, 16, 5, 64

paddle.enable_static()


class SkipGrams(paddle.io.Dataset):
    """Words whose neighbours are near 7 times their number; negatives are drawn from all."""

    def __init__(self, size):
        super().__init__()
        rng = np.random.RandomState(0)
        self.center = rng.randint(0, VOCABULARY, (size, 1))
        self.context = (self.center * 7 + rng.randint(0, 3, (size, 1))) % VOCABULARY
        self.negative = rng.randint(0, VOCABULARY, (size, NEGATIVES))

    def __getitem__(self, index):
        return self.center[index], self.context[index], self.negative[index]

    def __len__(self):
        return len(self.center)


class Model(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = paddle.nn.Embedding(VOCABULARY, WIDTH, sparse=True,
                                             weight_attr=paddle.ParamAttr(name="emb_in"))
        self.embedding_out = paddle.nn.Embedding(VOCABULARY, WIDTH, sparse=True,
                                                 weight_attr=paddle.ParamAttr(name="emb_out"))

    def forward(self, center, context, negative):
        word = self.embedding(center)
        positive = paddle.sum(paddle.multiply(word, self.embedding_out(context)), axis=-1)
        others = paddle.sum(paddle.multiply(word, self.embedding_out(negative)), axis=-1)
        loss = F.binary_cross_entropy_with_logits(positive, paddle.ones_like(positive))
        return loss + F.binary_cross_entropy_with_logits(others, paddle.zeros_like(others))


def train(optimizer, epochs, watch=None):
    """The costs of all steps."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    startup.random_seed = 11
    costs = []
    with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()):
        feeds = [paddle.static.data(name, [None, width], "int64")
                 for name, width in (("center", 1), ("context", 1), ("negative", NEGATIVES))]
        loss = Model()(*feeds)
        optimizer.minimize(loss)
        place = paddle.CPUPlace()
        exe = paddle.static.Executor(place)
        exe.run(startup)
        loader = paddle.io.DataLoader(SkipGrams(6400), feed_list=feeds, places=[place], batch_size=BATCH_SIZE,
                                      shuffle=False, return_list=False)
        if watch is not None:
            watch.start(*(np.array(paddle.static.global_scope().find_var(name).get_tensor(), "float64")
                          for name in ("emb_in", "emb_out")))
        for _ in range(epochs):
            for data in loader():
                costs.append(np.array(exe.run(main, feed=data, fetch_list=[loss])[0]).item())
                if watch is not None:
                    watch.step(data[0] if isinstance(data, list) else data)
    return costs


class Replay:
    """The same training by the formulas."""

    def __init__(self, rate):
        self.rate, self.costs = rate, []

    def start(self, word, context):
        self.word, self.context = word, context

    def step(self, data):
        center, context, negative = (np.array(data[name]) for name in ("center", "context", "negative"))
        rows, ids = self.word[center[:, 0]], np.concatenate([context, negative], axis=1)
        logits = np.einsum("bd,bkd->bk", rows, self.context[ids])
        self.costs.append(np.log1p(np.exp(-logits[:, 0])).mean() + np.log1p(np.exp(logits[:, 1:])).mean())
        slopes = 1 / (1 + np.exp(-logits))
        slopes[:, 0] = (slopes[:, 0] - 1) / len(rows)
        slopes[:, 1:] /= negative.size
        of_word = np.einsum("bk,bkd->bd", slopes, self.context[ids])
        np.add.at(self.context, ids, -self.rate * slopes[:, :, None] * rows[:, None])
        np.add.at(self.word, center[:, 0], -self.rate * of_word)


def main():
    replay = Replay(0.5)
    slow = train(paddle.optimizer.SGD(learning_rate=0.5), 2, replay)
    print("slow_first=%f slow_last=%f difference=%.9f" % (
        slow[0], slow[-1], max(abs(ours - theirs) for ours, theirs in zip(slow, replay.costs))))
    by_rows = train(paddle.optimizer.SGD(learning_rate=0.5 * BATCH_SIZE), 8)
    adam = train(paddle.optimizer.Adam(learning_rate=0.01), 8)
    print("by_rows_first=%f by_rows_last=%f" % (by_rows[0], np.mean(by_rows[-20:])))
    print("adam_first=%f adam_last=%f" % (adam[0], np.mean(adam[-20:])))


if __name__ == "__main__":
    main()
