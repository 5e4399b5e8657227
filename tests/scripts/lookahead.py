"""1.x: a tag that depends on the word two places later, found by row_conv over ragged sequences; then the file by
hand."""

import os
import tempfile

import numpy as np
import paddle.fluid as fluid

fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 5
layers = fluid.layers

word = fluid.data(name="word", shape=[None, 1], dtype="int64", lod_level=1)
tag = fluid.data(name="tag", shape=[None, 1], dtype="int64", lod_level=1)
embedded = fluid.embedding(word, size=[10, 16])
embedded = layers.reshape(embedded, [-1, 16])
embedded = layers.lod_reset(embedded, word)
ahead = layers.row_conv(embedded, future_context_size=2, param_attr=fluid.ParamAttr(name="ahead"))
guess = layers.fc(ahead, size=2, act="softmax")
loss = layers.mean(layers.cross_entropy(guess, tag))
accuracy = layers.accuracy(guess, tag)
fluid.optimizer.Adam(learning_rate=0.02).minimize(loss)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
rng = np.random.RandomState(0)


def batch():
    words, tags, lengths = [], [], rng.randint(1, 9, 20)
    for length in lengths:
        one = rng.randint(1, 10, length)
        later = np.append(one, [0, 0])[2:]
        words.extend(one)
        tags.extend((later >= 5).astype("int64"))
    made = [np.array(values, "int64").reshape(-1, 1) for values in (words, tags)]
    return [fluid.create_lod_tensor(values, [list(lengths)], fluid.CPUPlace()) for values in made]


for step in range(200):
    words, tags = batch()
    found = exe.run(feed={"word": words, "tag": tags}, fetch_list=[loss, accuracy])
    if step == 0:
        first = found[0][0]
share = np.mean(1 - np.array(tags))
print("first=%g last=%g right=%g blind=%g" % (first, found[0][0], found[1][0], max(share, 1 - share)))

folder = tempfile.mkdtemp()
fluid.io.save_vars(exe, folder, vars=[fluid.default_main_program().global_block().var("ahead")])
reading = fluid.Program()
with fluid.program_guard(reading, fluid.Program()):
    weight = layers.create_tensor(dtype="float32")
    layers.load(weight, file_path=os.path.join(folder, "ahead"))
    same = layers.scale(weight, scale=1.0)
    batched = layers.row_conv(layers.data("x", [3, 4]), future_context_size=1)
    halves = layers.unbind(layers.fill_constant([2, 3], "float32", 1.0), axis=0)
    distinct, index, count = layers.unique_with_counts(layers.assign(np.array([2, 3, 3, 1, 5, 3], "int32")))
loaded, out, counts = exe.run(reading, fetch_list=[same, distinct, count])
learned = np.array(fluid.global_scope().find_var("ahead").get_tensor())
print("weights=%d difference=%g" % (len(loaded), np.abs(loaded - learned).max()))
print("words=%d most=%d parts=%d rows=%d" % (len(out), counts.max(), len(halves), halves[0].shape[0]))
assert batched.shape == (-1, 3, 4)
