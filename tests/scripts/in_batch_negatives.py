"""A two-tower model with in-batch negatives over titles cut to a length that is fed, in static mode of 2.x."""

import numpy as np
import paddle
import paddle.nn.functional as F

paddle.enable_static()
paddle.seed(5)

WORDS, WIDTH, LONGEST = 50, 8, 6
queries = paddle.static.data("queries", [None, LONGEST], "int64")
titles = paddle.static.data("titles", [None, LONGEST], "int64")
length = paddle.static.data("length", [1], "int32")
ceiling = paddle.static.data("ceiling", [1], "float32")


def tower(ids):
    words = paddle.static.nn.embedding(ids[:, 0:length], [WORDS, WIDTH], param_attr=paddle.ParamAttr(name="words"))
    return paddle.sum(words, axis=1)


query, title = tower(queries), tower(titles)
first = paddle.full([1], 0, "int32")
both = paddle.concat([query, title], axis=first)
spread = paddle.std(both, axis=0)                        # over a batch of unknown size
left, right = paddle.split(paddle.divide(both, spread), num_or_sections=2, axis=first)
positive = F.cosine_similarity(left, right)
negative = F.cosine_similarity(left, paddle.roll(right, shifts=1, axis=0))
gap = paddle.clip(0.5 - positive + negative, min=0.0, max=ceiling)
loss = paddle.mean(gap)

correct = paddle.cast(positive > negative, "int64")
right_of_all = paddle.sum(correct) * 1.0 / paddle.cast(paddle.shape(queries)[0], "float32")
place = F.one_hot(correct, paddle.full([1], 2, "int32"))
paddle.optimizer.Adam(learning_rate=0.02).minimize(loss)

exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
rng = np.random.RandomState(0)
losses, sizes = [], []
for step in range(150):
    rows = 8 if step % 2 else 12
    ids = rng.randint(1, WORDS // 2, size=(rows, LONGEST))
    feed = {"queries": ids, "titles": ids + WORDS // 2, "length": np.array([2 + step % 3], "int32"),
            "ceiling": np.array([0.9], "float32")}
    cost, share, hot = exe.run(feed=feed, fetch_list=[loss, right_of_all, place])
    losses.append(float(cost[0]))
    sizes.append(hot.shape)

try:
    paddle.sum(query, axis=length)
    refused = 0
except TypeError:
    refused = 1
print(f"first={np.mean(losses[:10]):.4f} last={np.mean(losses[-10:]):.4f} right={share[0]:.3f} "
      f"rows={len(set(sizes))} width={sizes[0][1]} refused={refused}")
