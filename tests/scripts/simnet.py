"""Matching queries with titles, in the manner of dist_simnet_bow: bags of words, cosine, a margin."""

import numpy as np
import paddle
import paddle.fluid as fluid

DICT_DIM, EMB_DIM, HID_DIM = 300, 16, 16
MARGIN = 0.1
BASE_LR = 0.2


def tower(ids, is_sparse):
    emb = fluid.layers.embedding(
        input=ids, is_distributed=False, size=[DICT_DIM, EMB_DIM], is_sparse=is_sparse,
        param_attr=fluid.ParamAttr(name="__emb__", learning_rate=5.0,
                                   initializer=fluid.initializer.Uniform(-0.5, 0.5, seed=11)))
    pool = fluid.layers.sequence_pool(input=emb, pool_type="sum")
    pool = fluid.layers.softsign(pool)
    return fluid.layers.fc(input=pool, size=HID_DIM,
                           param_attr=fluid.ParamAttr(name="__fc__", initializer=fluid.initializer.Xavier(seed=3)),
                           bias_attr=fluid.ParamAttr(name="__fc_b__", initializer=fluid.initializer.Constant(0.01)))


def get_loss(cos_q_pt, cos_q_nt):
    loss_op1 = fluid.layers.elementwise_sub(
        fluid.layers.fill_constant_batch_size_like(input=cos_q_pt, shape=[-1, 1], value=MARGIN, dtype="float32"),
        cos_q_pt)
    loss_op2 = fluid.layers.elementwise_add(loss_op1, cos_q_nt)
    loss_op3 = fluid.layers.elementwise_max(
        fluid.layers.fill_constant_batch_size_like(input=loss_op2, shape=[-1, 1], value=0.0, dtype="float32"),
        loss_op2)
    return fluid.layers.mean(loss_op3)


def get_acc(cos_q_nt, cos_q_pt):
    cond = fluid.layers.less_than(cos_q_nt, cos_q_pt)
    cond = fluid.layers.cast(cond, dtype="float64")
    cond_3 = fluid.layers.reduce_sum(cond)
    return fluid.layers.elementwise_div(
        cond_3, fluid.layers.reduce_sum(fluid.layers.fill_constant_batch_size_like(
            input=cos_q_pt, shape=[-1, 1], value=1.0, dtype="float64")), name="simnet_acc")


def train_network(is_sparse=False):
    q = fluid.layers.data(name="query_ids", shape=[1], dtype="int64", lod_level=1)
    pt = fluid.layers.data(name="pos_title_ids", shape=[1], dtype="int64", lod_level=1)
    nt = fluid.layers.data(name="neg_title_ids", shape=[1], dtype="int64", lod_level=1)
    datas = [q, pt, nt]
    q_fc, pt_fc, nt_fc = (tower(data, is_sparse) for data in datas)
    cos_q_pt = fluid.layers.cos_sim(q_fc, pt_fc)
    cos_q_nt = fluid.layers.cos_sim(q_fc, nt_fc)
    avg_cost = get_loss(cos_q_pt, cos_q_nt)
    acc = get_acc(cos_q_nt, cos_q_pt)
    return avg_cost, acc, cos_q_pt, datas


def reader():
    """A title fits where its words share the query's remainder modulo ten."""
    rng = np.random.RandomState(5)
    for _ in range(1200):
        topic, other = rng.choice(10, 2, replace=False)
        yield [list(10 * rng.randint(0, DICT_DIM // 10, size=rng.randint(2, 6)) + which)
               for which in (topic, topic, other)]


def main():
    avg_cost, acc, cos_q_pt, datas = train_network(is_sparse=True)
    boundaries = [1e8, 2e8]
    values = [BASE_LR * (0.1 ** i) for i in range(len(boundaries) + 1)]
    optimizer = fluid.optimizer.SGD(learning_rate=fluid.layers.piecewise_decay(boundaries=boundaries, values=values))
    optimizer.minimize(avg_cost)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(datas, place)
    results = []
    for _ in range(4):
        for batch in paddle.batch(reader, batch_size=60)():
            results.append(exe.run(feed=feeder.feed(batch), fetch_list=[avg_cost.name, acc.name]))
    losses, accs = np.array(results)[:, 0, 0], np.array(results)[:, 1, 0]
    print("first=%f last=%f" % (losses[:5].mean(), losses[-5:].mean()))
    print("accuracy=%f" % accs[-20:].mean())
    assert cos_q_pt.shape[-1] == 1 and results[0][1].dtype == np.float64


if __name__ == "__main__":
    main()
