"""An n-gram language model in the manner of the word2vec chapter: four words, one shared table, the next word."""

import sys
import tempfile

import numpy as np
import paddle
import paddle.fluid as fluid

EMBED_SIZE = 16
HIDDEN_SIZE = 64
N = 5
BATCH_SIZE = 64
IS_SPARSE = "--dense" not in sys.argv
PASS_NUM = 3

word_dict = paddle.dataset.imikolov.build_dict(min_word_freq=5)
dict_size = len(word_dict)
train_reader = paddle.batch(
    paddle.reader.firstn(paddle.dataset.imikolov.train(word_dict, N), 6400), BATCH_SIZE)
test_reader = paddle.batch(paddle.reader.firstn(paddle.dataset.imikolov.test(word_dict, N), 640), BATCH_SIZE)


def network(words):
    embeds = [
        fluid.layers.embedding(input=word, size=[dict_size, EMBED_SIZE], dtype="float32", is_sparse=IS_SPARSE,
                               param_attr=fluid.ParamAttr(
                                   name="shared_w", initializer=fluid.initializer.Uniform(low=-0.1, high=0.1)))
        for word in words[:4]]
    concat_embed = fluid.layers.concat(input=embeds, axis=1)
    hidden1 = fluid.layers.fc(input=concat_embed, size=HIDDEN_SIZE, act="sigmoid")
    predict_word = fluid.layers.fc(input=hidden1, size=dict_size, act="softmax")
    cost = fluid.layers.cross_entropy(input=predict_word, label=words[4])
    return fluid.layers.mean(cost), predict_word


def main():
    names = ["firstw", "secondw", "thirdw", "forthw", "nextw"]
    words = [fluid.layers.data(name=name, shape=[1], dtype="int64") for name in names]
    avg_cost, predict_word = network(words)
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.default_startup_program().random_seed = 7
    fluid.optimizer.Adam(learning_rate=0.003, regularization=fluid.regularizer.L2DecayRegularizer(1e-6)) \
        .minimize(avg_cost)

    tables = [p.name for p in fluid.default_main_program().global_block().all_parameters() if "shared" in p.name]
    assert tables == ["shared_w"], tables

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    feeder = fluid.DataFeeder(feed_list=words, place=place)
    exe.run(fluid.default_startup_program())

    def cost_of_test():
        costs = [exe.run(test_program, feed=feeder.feed(data), fetch_list=[avg_cost])[0] for data in test_reader()]
        return float(np.mean(costs))

    print("words=%d" % dict_size)
    print("test_before=%f" % cost_of_test())
    for pass_id in range(PASS_NUM):
        for data in train_reader():
            avg_cost_np = exe.run(feed=feeder.feed(data), fetch_list=[avg_cost])
        print("pass %d cost %f" % (pass_id, float(avg_cost_np[0])))
    print("test_after=%f" % cost_of_test())

    # Four words as sequences of length one, as the chapter's inference does.
    with tempfile.TemporaryDirectory() as folder:
        fluid.io.save_inference_model(folder, names[:4], [predict_word], exe, main_program=test_program)
        with fluid.scope_guard(fluid.core.Scope()):
            program, feeds, targets = fluid.io.load_inference_model(folder, exe)
            fed = {name: fluid.create_lod_tensor(np.array([[word_id]], dtype="int64"), [[1]], place)
                   for name, word_id in zip(feeds, (2, 7, 11, 3))}
            results = exe.run(program, feed=fed, fetch_list=targets, return_numpy=False)
    probabilities = np.array(results[0])
    print("probability_sum=%f shape0=%d shape1=%d" % (probabilities.sum(), *probabilities.shape))
    assert results[0].recursive_sequence_lengths() in ([], [[1]]), results[0].recursive_sequence_lengths()


if __name__ == "__main__":
    main()
