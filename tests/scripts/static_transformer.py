"""2.x in static mode: a transformer encoder of paddle.nn sorts tokens, with methods of variables throughout."""

import numpy as np
import paddle
import paddle.nn.functional as F

paddle.enable_static()
paddle.seed(7)
LENGTH, WORDS = 6, 10


class Sorter(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = paddle.nn.Embedding(WORDS, 32)
        self.place = self.create_parameter([1, LENGTH, 32])
        layer = paddle.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu", normalize_before=True)
        self.encoder = paddle.nn.TransformerEncoder(layer, 2, norm=paddle.nn.LayerNorm(32))
        self.head = paddle.nn.Sequential(paddle.nn.Linear(32, 32), paddle.nn.PReLU(), paddle.nn.Linear(32, WORDS))

    def forward(self, ids):
        hidden = self.encoder(self.embedding(ids) + self.place)
        return self.head(hidden)


ids = paddle.static.data("ids", [None, LENGTH], paddle.int64)
model = Sorter()
logits = model(ids)
target = paddle.sort(ids, axis=1)
loss = F.cross_entropy(logits.reshape([-1, WORDS]), target.reshape([-1, 1])).mean()
right = logits.argmax(axis=-1).equal(target).astype(paddle.float32).mean()
paddle.optimizer.Adam(learning_rate=3e-3).minimize(loss)

exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
rng = np.random.RandomState(0)
for step in range(150):
    fed = rng.randint(0, WORDS, (32, LENGTH)).astype("int64")
    found = exe.run(feed={"ids": fed}, fetch_list=[loss, right])
    if step == 0:
        first = float(found[0])
print("parameters=%d first=%g last=%g accuracy=%g" % (len(model.parameters()), first, float(found[0]), float(found[1])))
