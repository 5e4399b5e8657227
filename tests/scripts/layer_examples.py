"""The forms in which the documentation shows losses over many classes, sequence labels and click layers, each run
once."""

import numpy as np
import paddle.fluid as fluid

exe = fluid.Executor(fluid.CPUPlace())
ran = 0


def run(build, feed=None):
    """Build in programs of its own, run, and return what was built."""
    global ran
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        built = build()
        exe.run(startup)
        ran += 1
        return [np.array(value) for value in exe.run(
            main, feed=feed, fetch_list=list(built) if isinstance(built, (list, tuple)) else [built],
            return_numpy=False)]


def lod(values, lengths, dtype="int64"):
    return fluid.create_lod_tensor(np.array(values, dtype), [lengths], fluid.CPUPlace())


def hsigmoid():
    x = fluid.layers.fill_constant(shape=[4, 3], value=0.9, dtype="float32")
    y = fluid.layers.fill_constant(shape=[4, 1], value=1, dtype="int64")
    return fluid.layers.hsigmoid(input=x, label=y, num_classes=2, param_attr=fluid.initializer.Constant(value=0.05),
                                 bias_attr=fluid.initializer.Constant(value=.0))


def nce():
    window_size, dict_size, label_word = 5, 20, 3
    words = [fluid.data(name="word_{0}".format(i), shape=[-1, 1], dtype="int64") for i in range(window_size)]
    embs = [fluid.layers.embedding(input=words[i], size=[dict_size, 32], param_attr="embed", is_sparse=True)
            for i in range(window_size) if i != label_word]
    embs = fluid.layers.concat(input=embs, axis=1)
    loss = fluid.layers.nce(input=embs, label=words[label_word], num_total_classes=dict_size, param_attr="nce.w_0",
                            bias_attr="nce.b_0")
    dist = np.full(dict_size, 1 / dict_size)
    other = fluid.layers.nce(input=embs, label=words[label_word], num_total_classes=5, param_attr="nce.w_1",
                             bias_attr="nce.b_1", num_neg_samples=3, sampler="custom_dist", custom_dist=dist[:5] * 4)
    return loss, other


def sampled_softmax():
    input = fluid.layers.data(name="data", shape=[256], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    fc = fluid.layers.fc(input=input, size=100)
    return fluid.layers.sampled_softmax_with_cross_entropy(logits=fc, label=label, num_samples=25)


def crf():
    emission = fluid.data(name="emission", shape=[-1, 10, 8], dtype="float32")
    label = fluid.data(name="label", shape=[-1, 10, 1], dtype="int64")
    length = fluid.data(name="length", shape=[-1, 1], dtype="int64")
    cost = fluid.layers.linear_chain_crf(input=emission, label=label, length=length,
                                         param_attr=fluid.ParamAttr(name="crfw_pad"))
    path = fluid.layers.crf_decoding(input=emission, length=length, param_attr=fluid.ParamAttr(name="crfw_pad"))
    return cost, path


def warpctc():
    logits = fluid.data(name="logits", shape=[5, None, 4], dtype="float32")
    logits_length = fluid.data(name="logits_length", shape=[None], dtype="int64")
    label = fluid.data(name="label", shape=[None, 3], dtype="int32")
    label_length = fluid.data(name="labels_length", shape=[None], dtype="int64")
    return fluid.layers.warpctc(input=logits, label=label, input_length=logits_length, label_length=label_length)


def edit_distance():
    x = fluid.data(name="input_lod", shape=[None, 1], dtype="int64", lod_level=1)
    y = fluid.data(name="label_lod", shape=[None, 1], dtype="int64", lod_level=1)
    return fluid.layers.edit_distance(input=x, label=y)


def chunk_eval():
    label = fluid.data(name="label", shape=[None, 1], lod_level=1, dtype="int64")
    guess = fluid.data(name="guess", shape=[None, 1], lod_level=1, dtype="int64")
    return fluid.layers.chunk_eval(input=guess, label=label, chunk_scheme="IOB", num_chunk_types=2)


def npair():
    anchor, positive = (fluid.layers.data(name=name, shape=[18, 6], dtype="float32", append_batch_size=False)
                        for name in ("anchor", "positive"))
    labels = fluid.layers.data(name="labels", shape=[18], dtype="float32", append_batch_size=False)
    return fluid.layers.npair_loss(anchor, positive, labels, l2_reg=0.002)


def center():
    input = fluid.data(name="x", shape=[20, 30], dtype="float32")
    label = fluid.data(name="y", shape=[20, 1], dtype="int64")
    return fluid.layers.center_loss(input=input, label=label, num_classes=1000, alpha=0.01,
                                    param_attr=fluid.initializer.Xavier(uniform=False), update_center=True)


def click():
    ids = fluid.data(name="titles", shape=[None, 1], dtype="int32", lod_level=1)
    table = fluid.contrib.layers.fused_embedding_seq_pool(
        input=fluid.layers.cast(ids, "int64"), size=[10, 32], param_attr="w", padding_idx=3, combiner="sum",
        is_sparse=False)
    x = fluid.contrib.layers.shuffle_batch(fluid.layers.data_norm(name="hidden2", input=table))
    parts = fluid.contrib.layers.partial_concat([x, table], start_index=0, length=2)
    return fluid.layers.hash(name="hash_x", input=ids, num_hash=1, hash_size=1000), parts, \
        fluid.contrib.layers.partial_sum([x, table], start_index=0, length=2)


def main():
    rng = np.random.RandomState(0)
    costs, = run(hsigmoid)
    print("hsigmoid=%.6f" % costs[0, 0])
    words = {"word_{0}".format(i): rng.randint(0, 5, (4, 1)) for i in range(5)}
    print("nce_costs=%d" % sum(one.shape == (4, 1) for one in run(nce, words)))
    loss, = run(sampled_softmax, {"data": rng.rand(3, 256).astype("float32"), "label": np.array([[1], [50], [99]])})
    print("sampled=%d" % loss.size)
    cost, path = run(crf, {"emission": rng.rand(3, 10, 8).astype("float32"), "length": np.array([[3], [3], [10]]),
                           "label": rng.randint(0, 8, (3, 10, 1))})
    print("crf=%d path=%d behind=%d" % (cost.size, path.size, path[0, 3:].sum()))
    loss, = run(warpctc, {"logits": rng.rand(5, 2, 4).astype("float32"), "logits_length": np.array([5, 4]),
                          "label": rng.randint(1, 4, (2, 3)).astype("int32"), "labels_length": np.array([3, 1])})
    print("ctc=%d ctc_least=%f" % (loss.size, loss.min()))
    distance, count = run(edit_distance, {"input_lod": lod([[1], [2], [3]], [3]), "label_lod": lod([[1], [3]], [2])})
    print("distance=%f sequences=%d" % (distance[0, 0], count[0]))
    precision, recall, f1, *counts = run(chunk_eval, {"label": lod([[0], [1], [4], [2]], [4]),
                                                      "guess": lod([[0], [1], [2], [3]], [4])})
    print("precision=%f recall=%f correct=%d" % (precision[0], recall[0], counts[2][0]))
    loss, = run(npair, {"anchor": rng.rand(18, 6).astype("float32"), "positive": rng.rand(18, 6).astype("float32"),
                        "labels": rng.randint(0, 5, 18).astype("float32")})
    loss_of_centers, = run(center, {"x": rng.rand(20, 30).astype("float32"), "y": rng.randint(0, 1000, (20, 1))})
    print("npair=%d centers=%d" % (loss.size, loss_of_centers.size))
    hashes, parts, sums = run(click, {"titles": lod([[1], [2], [3]], [2, 1], "int32")})
    print("hashes=%d parts=%d sums=%d ran=%d" % (hashes.size, parts.shape[1], sums.shape[1], ran))


if __name__ == "__main__":
    main()
