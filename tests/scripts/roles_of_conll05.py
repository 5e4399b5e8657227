"""Who does what to whom, in the manner of the book's chapter on semantic roles: eight inputs, word vectors from a
file."""

import numpy as np
import paddle
import paddle.dataset.conll05 as conll05
import paddle.fluid as fluid

word_dict, verb_dict, label_dict = conll05.get_dict()
WORD_DIM, MARK_DIM, HIDDEN = 32, 5, 32
FEATURES = ["word_data", "ctx_n2_data", "ctx_n1_data", "ctx_0_data", "ctx_p1_data", "ctx_p2_data"]


def load_parameter(file_name, h, w):
    with open(file_name, "rb") as f:
        f.read(16)  # skip header.
        return np.fromfile(f, dtype=np.float32).reshape(h, w)


def net():
    inputs = [fluid.data(name=name, shape=[None, 1], dtype="int64", lod_level=1)
              for name in FEATURES + ["verb_data", "mark_data"]]
    words = [fluid.embedding(input=x, size=[len(word_dict), WORD_DIM],
                             param_attr=fluid.ParamAttr(name="emb", trainable=False))
             for x in inputs[:6]]
    verb = fluid.embedding(input=inputs[6], size=[len(verb_dict), WORD_DIM], param_attr="vemb")
    mark = fluid.embedding(input=inputs[7], size=[2, MARK_DIM])
    hidden = fluid.layers.sums(input=[fluid.layers.fc(input=x, size=4 * HIDDEN) for x in words + [verb, mark]])
    forward, _ = fluid.layers.dynamic_lstm(input=hidden, size=4 * HIDDEN, candidate_activation="relu",
                                           gate_activation="sigmoid", cell_activation="sigmoid")
    backward, _ = fluid.layers.dynamic_lstm(input=hidden, size=4 * HIDDEN, candidate_activation="relu",
                                            gate_activation="sigmoid", cell_activation="sigmoid", is_reverse=True)
    predict = fluid.layers.fc(input=[forward, backward], size=len(label_dict), act="softmax")
    target = fluid.data(name="target", shape=[None, 1], dtype="int64", lod_level=1)
    cost = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=target))
    return inputs + [target], predict, cost, fluid.layers.accuracy(input=predict, label=target)


def train():
    fluid.default_startup_program().random_seed = 5
    feed_list, predict, avg_cost, accuracy = net()
    fluid.optimizer.Adam(learning_rate=0.03).minimize(avg_cost)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    embedding = fluid.global_scope().find_var("emb").get_tensor()
    embedding.set(load_parameter(conll05.get_embedding(), len(word_dict), WORD_DIM), place)
    feeder = fluid.DataFeeder(feed_list=feed_list, place=place)
    reader = fluid.io.batch(paddle.reader.shuffle(conll05.test(), buf_size=8192), batch_size=50)
    costs, rights = [], []
    for _ in range(3):
        for data in reader():
            cost, right = exe.run(fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_cost, accuracy])
            costs.append(cost[0])
            rights.append(right[0])
    print("labels=%d first=%f last=%f accuracy=%f" % (len(label_dict), costs[0], np.mean(costs[-5:]),
                                                      np.mean(rights[-5:])))


if __name__ == "__main__":
    train()
