"""Encoder and decoder in the manner of the book's chapter on translation: wmt14, LoD feeds, DynamicRNN."""

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as pd

DICT_SIZE, WORD_DIM, HIDDEN = 320, 24, 32


def encoder():
    src_word_id = pd.data(name="src_word_id", shape=[1], dtype="int64", lod_level=1)
    embedding = pd.embedding(input=src_word_id, size=[DICT_SIZE, WORD_DIM], dtype="float32", is_sparse=True,
                             param_attr=fluid.ParamAttr(name="vemb"))
    gates = pd.fc(input=embedding, size=HIDDEN * 4, act="tanh")
    hidden, _ = pd.dynamic_lstm(input=gates, size=HIDDEN * 4)
    return pd.sequence_last_step(input=hidden)


def train_decoder(context):
    trg = pd.data(name="target_language_word", shape=[1], dtype="int64", lod_level=1)
    embedding = pd.embedding(input=trg, size=[DICT_SIZE, WORD_DIM], dtype="float32", is_sparse=True,
                             param_attr=fluid.ParamAttr(name="vemb_target"))
    rnn = pd.DynamicRNN()
    with rnn.block():
        current_word = rnn.step_input(embedding)
        pre_state = rnn.memory(init=context)
        current_state = pd.fc(input=[current_word, pre_state], size=HIDDEN, act="tanh")
        rnn.update_memory(pre_state, current_state)
        rnn.output(pd.fc(input=current_state, size=DICT_SIZE, act="softmax"))
    return rnn()


def main():
    fluid.default_startup_program().random_seed = 11
    rnn_out = train_decoder(encoder())
    label = pd.data(name="target_language_next_word", shape=[1], dtype="int64", lod_level=1)
    avg_cost = pd.mean(pd.cross_entropy(input=rnn_out, label=label))
    fluid.optimizer.Adam(learning_rate=0.02).minimize(avg_cost)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    names = ["src_word_id", "target_language_word", "target_language_next_word"]
    feeder = fluid.DataFeeder([fluid.default_main_program().global_block().var(name) for name in names], place)
    reader = paddle.batch(paddle.reader.shuffle(paddle.dataset.wmt14.train(DICT_SIZE), buf_size=1000), batch_size=32)
    costs = []
    for data in reader():
        costs.append(exe.run(feed=feeder.feed(data), fetch_list=[avg_cost])[0][0])
    source, target = paddle.dataset.wmt14.get_dict(DICT_SIZE)
    print("first=%f last=%f source=%d target=%d" % (costs[0], np.mean(costs[-5:]), len(source), len(target)))


main()
