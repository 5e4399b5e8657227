"""Skip-grams with noise contrastive estimation on parameter servers, in the manner of the distributed word2vec."""

import sys

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig

DICT_SIZE = 300
EMBEDDING_SIZE = 16
BATCH_SIZE = 50
NEG_NUM = 5


def skip_gram_word2vec(is_sparse=True):
    words = fluid.layers.data(name="input_word", shape=[1], dtype="int64")
    labels = fluid.layers.data(name="true_label", shape=[1], dtype="int64")
    emb = fluid.layers.embedding(input=words, is_sparse=is_sparse, size=[DICT_SIZE, EMBEDDING_SIZE],
                                 param_attr=fluid.ParamAttr(name="emb", initializer=fluid.initializer.Uniform(
                                     -0.5 / EMBEDDING_SIZE, 0.5 / EMBEDDING_SIZE)))
    # Words are numbered by how often they occur, so the chance of a negative one is known.
    frequency = 1.0 / np.arange(1, DICT_SIZE + 1)
    cost = fluid.layers.nce(input=emb, label=labels, num_total_classes=DICT_SIZE, sample_weight=None,
                            param_attr=fluid.ParamAttr(name="nce_w", initializer=fluid.initializer.Normal(scale=0.1)),
                            bias_attr=fluid.ParamAttr(name="nce_b"), num_neg_samples=NEG_NUM, sampler="custom_dist",
                            custom_dist=(frequency / frequency.sum()).tolist(), seed=1, is_sparse=is_sparse)
    return fluid.layers.reduce_mean(cost), words, labels


def sentences():
    rng = np.random.RandomState(1)
    for _ in range(8000):
        word = rng.randint(DICT_SIZE)
        yield word, (word + rng.choice([-1, 1])) % DICT_SIZE


def main():
    fleet.init(role_maker.PaddleCloudRoleMaker())
    fluid.default_startup_program().random_seed = 9
    avg_cost, words, labels = skip_gram_word2vec()
    strategy = DistributeTranspilerConfig()
    strategy.sync_mode = "--async" not in sys.argv
    optimizer = fleet.distributed_optimizer(fluid.optimizer.Adam(learning_rate=0.01, lazy_mode=True), strategy)
    optimizer.minimize(avg_cost)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    feeder = fluid.DataFeeder(feed_list=[words, labels], place=fluid.CPUPlace())
    costs = []
    for _ in range(3):
        for data in paddle.batch(sentences, BATCH_SIZE)():
            costs.append(exe.run(fleet.main_program, feed=feeder.feed(data), fetch_list=[avg_cost])[0].item())
    types = [op.type for op in fleet.main_program.global_block().ops]
    print("first=%f last=%f nce=%d" % (costs[0], np.mean(costs[-20:]), types.count("nce")))
    fleet.stop_worker()


if __name__ == "__main__":
    main()
