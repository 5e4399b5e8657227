"""Loaders as scripts of 1.x use them: LoD feeds, the queue, passes that are begun and left in any order, odd feeds."""

import threading

import numpy as np
import paddle
import paddle.fluid as fluid

data = fluid.layers.data(name="words", shape=[1], dtype="int64", lod_level=1)
label = fluid.layers.data(name="label", shape=[1], dtype="int64")
embedding = fluid.layers.embedding(input=data, size=[50, 8])
wide = fluid.layers.expand(embedding, expand_times=[1, 2])  # keeps the sequences
pooled = fluid.layers.sequence_pool(input=wide, pool_type="average")
predict = fluid.layers.fc(input=pooled, size=2, act="softmax")
cost = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=label))
fluid.default_startup_program().random_seed = 2
fluid.optimizer.Adam(learning_rate=0.05).minimize(cost)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())


def sentences():
    rng = np.random.RandomState(4)
    for _ in range(160):
        good = rng.randint(2)
        yield zip(*[([int(word) for word in rng.randint(25 * good, 25 * good + 25, rng.randint(1, 6))], good)])


def samples():
    for sample in sentences():  # every sample is a zip object
        yield [field for (field,) in sample]


iterable = fluid.io.DataLoader.from_generator(feed_list=[data, label], capacity=4, iterable=True)
iterable.set_sample_generator(samples, batch_size=16, places=fluid.cpu_places())
for feed in iterable():
    first = exe.run(feed=feed, fetch_list=[cost])[0][0]
    assert isinstance(feed[0]["words"], fluid.LoDTensor), type(feed[0]["words"])
    lengths = feed[0]["words"].recursive_sequence_lengths()[0]
    break

reader = fluid.layers.create_py_reader_by_data(capacity=4, feed_list=[data, label])
reader.decorate_paddle_reader(paddle.batch(samples, 16))
reader.reset()  # before the first start
steps = 0
for epoch in range(4):
    reader.start()
    try:
        while True:
            last = exe.run(fetch_list=[cost])[0][0]
            steps += 1
            if epoch == 0 and steps == 3:
                break  # the next start begins anew
    except fluid.core.EOFException:
        reader.reset()


def push(queue):
    for number in range(3):
        tensor = fluid.create_lod_tensor([[number, number + 1]], [[2]], fluid.CPUPlace())
        array = fluid.core.LoDTensorArray()
        array.append(tensor)
        array.append(np.zeros([1, 1], "int64"))
        assert queue.push(array)
    queue.close()


thread = threading.Thread(target=push, args=[reader.queue])
thread.start()
thread.join()
waiting = reader.queue.size()
pushed = 0
try:
    while True:
        exe.run(fetch_list=[cost])
        pushed += 1
except fluid.core.EOFException:
    reader.reset()
print("sentences=%d first=%f last=%f steps=%d waiting=%d pushed=%d" % (len(lengths), first, last, steps, waiting,
                                                                       pushed))

# The original asks only what the ops need: a batch of one dimension where two were declared, none where one was added.
odd = fluid.Program()
with fluid.program_guard(odd):
    x = fluid.layers.data(name="x", shape=[1], dtype="float32")
    y = fluid.layers.data(name="y", shape=[2, 3], dtype="float32")
    twice, total = x * 2.0, fluid.layers.reduce_sum(y, dim=-1)
a, b = exe.run(odd, feed={"x": np.ones(5, "float32"), "y": np.ones((2, 3), "float32")}, fetch_list=[twice, total])
print("doubled=%d sums=%d" % (a.sum(), b.sum()))
