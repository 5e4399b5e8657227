"""House prices by paddle.text.UCIHousing: a regression over a DataLoader with a worker process, then words by
number."""

import numpy as np
import paddle
from paddle.text import Imdb, UCIHousing

paddle.enable_static()
paddle.seed(3)

train_dataset, eval_dataset = UCIHousing(mode='train'), UCIHousing(mode='test')
features, price = train_dataset[0]
print("train=%d eval=%d features=%d" % (len(train_dataset), len(eval_dataset), features.shape[0]))

x = paddle.static.data(name='x', shape=[None, 13], dtype='float32')
y = paddle.static.data(name='y', shape=[None, 1], dtype='float32')
regressor = paddle.nn.Linear(13, 1)
predict = regressor(x)
cost = paddle.nn.functional.mse_loss(predict, y)
test_program = paddle.static.default_main_program().clone(for_test=True)
paddle.optimizer.SGD(learning_rate=0.05, parameters=regressor.parameters()).minimize(cost)

exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())

loader = paddle.io.DataLoader(train_dataset, feed_list=[x, y], batch_size=20, shuffle=True, return_list=True,
                              num_workers=1)
losses = []
for epoch in range(12):
    for inputs, prices in loader():
        loss, = exe.run(feed={'x': inputs, 'y': prices}, fetch_list=[cost])
        losses.append(float(loss[0]))

errors = []
for inputs, prices in paddle.io.DataLoader(eval_dataset, batch_size=51, return_list=True):
    guess, = exe.run(test_program, feed={'x': inputs, 'y': prices}, fetch_list=[predict])
    errors.append(np.abs(guess - np.asarray(prices)).mean())
print("first=%f last=%f error=%f" % (losses[0], np.mean(losses[-10:]), np.mean(errors)))

imdb = Imdb(mode='test')
doc, label = imdb[0]
print("reviews=%d words=%d known=%d good=%d" % (len(imdb), len(imdb.word_idx), doc.max() < len(imdb.word_idx),
                                                label[0] == 0))
