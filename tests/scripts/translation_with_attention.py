"""The machine translation chapter: an encoder, a decoder with attention in a DynamicRNN, trained."""

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as pd

DICT, WORD_DIM, HIDDEN, BATCH = 14, 16, 24, 16
START, END = 0, 1


def encoder():
    source = pd.data(name="src_word_id", shape=[1], dtype="int64", lod_level=1)
    words = pd.embedding(input=source, size=[DICT, WORD_DIM], is_sparse=True, param_attr=fluid.ParamAttr(name="vemb"))
    forward = pd.dynamic_gru(pd.fc(input=words, size=HIDDEN * 3, bias_attr=False), size=HIDDEN)
    backward = pd.dynamic_gru(pd.fc(input=words, size=HIDDEN * 3, bias_attr=False), size=HIDDEN, is_reverse=True)
    return pd.concat([forward, backward], axis=1), pd.sequence_first_step(backward)


def attention(encoded, projected, state):
    expanded = pd.sequence_expand(x=pd.fc(input=state, size=HIDDEN, bias_attr=False), y=projected)
    weights = pd.sequence_softmax(pd.fc(input=pd.tanh(projected + expanded), size=1, bias_attr=False))
    return pd.sequence_pool(pd.elementwise_mul(x=encoded, y=pd.reshape(weights, [-1]), axis=0), pool_type="sum")


def decoder(encoded, first):
    target = pd.data(name="target_language_word", shape=[1], dtype="int64", lod_level=1)
    words = pd.embedding(input=target, size=[DICT, WORD_DIM], is_sparse=True,
                         param_attr=fluid.ParamAttr(name="vemb_trg"))
    projected = pd.fc(input=encoded, size=HIDDEN, bias_attr=False)
    boot = pd.fc(input=first, size=HIDDEN, act="tanh", bias_attr=False)
    rnn = pd.DynamicRNN()
    with rnn.block():
        current_word = rnn.step_input(words)
        encoder_vec = rnn.static_input(encoded)
        encoder_proj = rnn.static_input(projected)
        state = rnn.memory(init=boot, need_reorder=True)
        context = attention(encoder_vec, encoder_proj, state)
        inputs = pd.fc(input=[context, current_word], size=HIDDEN * 3, bias_attr=False)
        new_state, _, _ = pd.gru_unit(input=inputs, hidden=state, size=HIDDEN * 3)
        rnn.update_memory(state, new_state)
        rnn.output(pd.fc(input=new_state, size=DICT, act="softmax"))
    return rnn()


def train_program():
    encoded, first = encoder()
    prediction = decoder(encoded, first)
    label = pd.data(name="target_language_next_word", shape=[1], dtype="int64", lod_level=1)
    return pd.mean(pd.cross_entropy(input=prediction, label=label)), prediction


def sentences(count=64):
    """A language whose sentences are translated by reading them backwards."""
    rng = np.random.RandomState(0)
    for _ in range(count):
        words = rng.randint(2, DICT, size=rng.randint(2, 5)).tolist()
        turned = words[::-1]
        yield words, [START] + turned, turned + [END]


def main():
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 7
    cost, prediction = train_program()
    label = fluid.default_main_program().global_block().var("target_language_next_word")
    right = pd.accuracy(input=prediction, label=label)
    fluid.optimizer.Adam(learning_rate=0.02, regularization=fluid.regularizer.L2DecayRegularizer(1e-6)).minimize(cost)
    main_program = fluid.default_main_program()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=["src_word_id", "target_language_word", "target_language_next_word"],
                              place=fluid.CPUPlace(), program=main_program)
    reader = paddle.batch(lambda: sentences(), batch_size=BATCH)
    costs = []
    for _ in range(24):
        for data in reader():
            loss, accuracy = exe.run(main_program, feed=feeder.feed(data), fetch_list=[cost, right])
            costs.append(float(np.array(loss).reshape(-1)[0]))
    print("first=%f last=%f accuracy=%f" % (costs[0], costs[-1], float(np.array(accuracy).reshape(-1)[0])))


if __name__ == "__main__":
    main()
