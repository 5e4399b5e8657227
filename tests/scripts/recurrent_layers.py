"""Recurrent layers as scripts of 1.8 and 2.x use them: rnn with cells, paddle.nn.LSTM, decoders, while_loop and
cond."""

import numpy as np
import paddle
import paddle.fluid as fluid

paddle.enable_static()
layers = fluid.layers
WORDS, WIDTH, HIDDEN, BATCH, STEPS = 12, 8, 16, 32, 5
START, END = 0, 1


class Decoding(object):
    """A decoder that learns to repeat the source, by a helper in training and with a beam afterwards."""

    def __init__(self):
        self.source_cell, self.target_cell = (
            layers.LSTMCell(HIDDEN, fluid.ParamAttr(name=name + "_w"), fluid.ParamAttr(name=name + "_b"))
            for name in ("source", "target"))

    def embed(self, ids):
        return fluid.embedding(ids, size=[WORDS, WIDTH], param_attr=fluid.ParamAttr(name="words"))

    def score(self, x):
        return layers.fc(x, WORDS, num_flatten_dims=len(x.shape) - 1, param_attr=fluid.ParamAttr(name="score_w"),
                         bias_attr=fluid.ParamAttr(name="score_b"))

    def encode(self):
        source = fluid.data("source", [None, None], "int64")
        length = fluid.data("source_length", [None], "int64")
        _, states = layers.rnn(cell=self.source_cell, inputs=self.embed(source), sequence_length=length)
        return states

    def train(self):
        target = fluid.data("target", [None, None], "int64")
        length = fluid.data("target_length", [None], "int64")
        label = fluid.data("label", [None, None], "int64")
        helper = layers.TrainingHelper(self.embed(target), length)
        decoder = layers.BasicDecoder(self.target_cell, helper, output_fn=self.score)
        outputs, _, _ = layers.dynamic_decode(decoder, inits=self.encode(), return_length=True)
        cost = layers.softmax_with_cross_entropy(outputs.cell_outputs, layers.unsqueeze(label, [2]))
        mask = layers.sequence_mask(length, maxlen=layers.shape(label)[1], dtype="float32")
        return layers.reduce_sum(layers.squeeze(cost, [2]) * mask) / layers.reduce_sum(mask)

    def search(self):
        decoder = layers.BeamSearchDecoder(self.target_cell, START, END, beam_size=3, embedding_fn=self.embed,
                                           output_fn=self.score)
        ids, _ = layers.dynamic_decode(decoder, inits=self.encode(), max_step_num=STEPS)
        return ids


def pairs(rng):
    lengths = rng.randint(2, STEPS, size=BATCH)
    source = np.full((BATCH, STEPS - 1), END)
    target, label = np.full((BATCH, STEPS), END), np.full((BATCH, STEPS), END)
    for row, length in enumerate(lengths):
        words = rng.randint(2, WORDS, size=length)
        source[row, :length], target[row, 0], target[row, 1:length + 1], label[row,
                                                                               :length] = words, START, words, words
    return {"source": source, "source_length": lengths, "target": target, "target_length": lengths + 1, "label": label}


def repeat_the_source(exe):
    main, startup, test = fluid.Program(), fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup):
        loss = Decoding().train()
        fluid.optimizer.Adam(0.02).minimize(loss)
    with fluid.program_guard(test, fluid.Program()):
        ids = Decoding().search()
    exe.run(startup)
    rng, losses = np.random.RandomState(0), []
    for _ in range(120):
        losses.append(float(exe.run(main, feed=pairs(rng), fetch_list=[loss])[0][0]))
    batch = pairs(np.random.RandomState(9))
    found, = exe.run(test, feed={name: batch[name] for name in ("source", "source_length")}, fetch_list=[ids])
    right = sum((found[row, :n, 0] == batch["source"][row, :n]).all() for row, n in enumerate(batch["source_length"]))
    print("first=%f last=%f found_by_beam=%f beams=%d" % (losses[0], losses[-1], right / float(BATCH), found.shape[2]))


def sums_by_nn(exe):
    """Whether the sum of a sequence is positive, by the layers of 2.x."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    main.random_seed = startup.random_seed = 5
    with paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", [None, 6, 3], "float32")
        y = paddle.static.data("y", [None, 1], "int64")
        lstm = paddle.nn.LSTM(3, HIDDEN, num_layers=2, direction="bidirect", dropout=0.1)
        _, (hidden, _) = lstm(x)
        gru_out, _ = paddle.nn.RNN(paddle.nn.GRUCell(3, HIDDEN))(x)
        features = paddle.concat([hidden[-1], hidden[-2], gru_out[:, -1]], axis=-1)
        logits = paddle.nn.Linear(3 * HIDDEN, 2)(features)
        loss = paddle.nn.functional.cross_entropy(logits, y)
        paddle.optimizer.Adam(0.01).minimize(loss)
    exe.run(startup)
    rng, losses = np.random.RandomState(1), []
    for _ in range(60):
        values = rng.normal(size=(64, 6, 3)).astype("float32")
        sign = (values.sum((1, 2)) > 0).astype("int64").reshape(-1, 1)
        losses.append(float(np.ravel(exe.run(main, feed={"x": values, "y": sign}, fetch_list=[loss])[0])[0]))
    print("nn_first=%f nn_last=%f lstm_parameters=%d" % (losses[0], losses[-1], len(lstm.parameters())))


def learn_through_control_flow(exe):
    """A loop of trained steps, and a branch that is chosen by the data."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 4])
        y = fluid.data("y", [None, 1])
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)

        def body(i, h):
            return [i + 1, layers.tanh(layers.fc(h, 4, param_attr=fluid.ParamAttr(name="loop_w")))]
        _, state = layers.while_loop(lambda i, h: i < n, body, [i, layers.scale(x, 1.0)])
        flag = layers.less_than(layers.reduce_mean(x), layers.fill_constant([1], "float32", 0.0))
        out = layers.cond(flag, lambda: layers.fc(state, 1), lambda: layers.fc(layers.concat([state, x], 1), 1))
        loss = layers.mean(layers.square_error_cost(out, y))
        fluid.optimizer.Adam(0.02).minimize(loss)
    exe.run(startup)
    rng, losses = np.random.RandomState(2), []
    for _ in range(200):
        values = rng.normal(size=(32, 4)).astype("float32")
        losses.append(float(exe.run(main, feed={"x": values, "y": np.tanh(values[:, :1])}, fetch_list=[loss])[0][0]))
    print("loop_first=%f loop_last=%f" % (np.mean(losses[:10]), np.mean(losses[-10:])))


if __name__ == "__main__":
    executor = fluid.Executor(fluid.CPUPlace())
    repeat_the_source(executor)
    sums_by_nn(executor)
    learn_through_control_flow(executor)
