"""Tagging in the manner of the label_semantic_roles chapter: embeddings, a CRF with its own rate, chunks counted."""

import contextlib
import tempfile

import numpy as np
import paddle
import paddle.fluid as fluid

WORD_DICT_LEN, LABEL_DICT_LEN, WORD_DIM, HIDDEN_DIM = 60, 7, 16, 32
MIX_HIDDEN_LR = 1e0
IS_SPARSE = True
BATCH_SIZE = 10


def train_reader():
    """Sentences of words 0..59; words from 40 on only continue what the word before began (IOB, three types)."""
    rng = np.random.RandomState(3)
    for _ in range(400):
        words, labels = [], []
        for _ in range(rng.randint(3, 9)):
            word = rng.randint(WORD_DICT_LEN)
            inside = labels and labels[-1] != 6 and word >= 40
            label = (labels[-1] // 2) * 2 + 1 if inside else word % 3 * 2 if word < 20 else 6
            words.append(word)
            labels.append(label)
        yield words, [int(i == 0) for i in range(len(words))], labels


def db_lstm(word, mark):
    word_emb = fluid.layers.embedding(input=word, size=[WORD_DICT_LEN, WORD_DIM], dtype="float32", is_sparse=IS_SPARSE,
                                      param_attr=fluid.ParamAttr(name="emb"))
    mark_emb = fluid.layers.embedding(input=mark, size=[2, 4], dtype="float32", is_sparse=IS_SPARSE)
    hidden = fluid.layers.sums(input=[fluid.layers.fc(input=emb, size=HIDDEN_DIM, act="tanh")
                                      for emb in (word_emb, mark_emb)])
    return fluid.layers.fc(input=hidden, size=LABEL_DICT_LEN)


def main():
    word = fluid.layers.data(name="word_data", shape=[1], dtype="int64", lod_level=1)
    mark = fluid.layers.data(name="mark_data", shape=[1], dtype="int64", lod_level=1)
    target = fluid.layers.data(name="target", shape=[1], dtype="int64", lod_level=1)
    feature_out = db_lstm(word, mark)
    crf_cost = fluid.layers.linear_chain_crf(
        input=feature_out, label=target, param_attr=fluid.ParamAttr(name="crfw", learning_rate=MIX_HIDDEN_LR))
    avg_cost = fluid.layers.mean(crf_cost)
    sgd_optimizer = fluid.optimizer.SGD(learning_rate=fluid.layers.exponential_decay(
        learning_rate=0.3, decay_steps=100000, decay_rate=0.5, staircase=True))
    sgd_optimizer.minimize(avg_cost)
    crf_decode = fluid.layers.crf_decoding(input=feature_out, param_attr=fluid.ParamAttr(name="crfw"))
    chunks = fluid.layers.chunk_eval(input=crf_decode, label=target, chunk_scheme="IOB", num_chunk_types=3)

    train_data = paddle.batch(paddle.reader.shuffle(train_reader, buf_size=500), batch_size=BATCH_SIZE)
    place = fluid.CPUPlace()
    feeder = fluid.DataFeeder(feed_list=[word, mark, target], place=place)
    exe = fluid.Executor(place)
    fluid.default_startup_program().random_seed = 90
    exe.run(fluid.default_startup_program())
    costs, evaluator = [], fluid.metrics.ChunkEvaluator()
    for _ in range(10):
        evaluator.reset()
        for data in train_data():
            cost, *counts = exe.run(fluid.default_main_program(), feed=feeder.feed(data),
                                    fetch_list=[avg_cost, *chunks[3:]])
            costs.append(float(cost))
            evaluator.update(*counts)
    precision, recall, f1 = evaluator.eval()
    print("first=%f last=%f precision=%f recall=%f f1=%f" % (costs[0], np.mean(costs[-20:]), precision, recall, f1))

    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        fluid.io.save_inference_model(folder, ["word_data", "mark_data"], [crf_decode], exe)
        stack.enter_context(fluid.scope_guard(fluid.core.Scope()))
        program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
        lod = [[3, 4, 2]]
        tensors = {name: fluid.create_lod_tensor(np.zeros((9, 1), "int64"), lod, place) for name in feeds}
        results = exe.run(program, feed=tensors, fetch_list=fetches, return_numpy=False)
        print("sentences=%d tags=%d" % (len(results[0].recursive_sequence_lengths()[0]), np.array(results[0]).shape[0]))


if __name__ == "__main__":
    main()
