"""An encoder block in the manner of dist_transformer: attention over heads, smoothed labels, the noam rate."""

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers

N_HEAD, D_KEY, D_MODEL, D_INNER = 2, 8, 16, 32
VOCAB, LENGTH, BATCH = 12, 6, 32
DROPOUT = 0.05

fluid.default_startup_program().random_seed = 90
fluid.default_main_program().random_seed = 90


def multi_head_attention(queries, keys, values, attn_bias):
    q = layers.fc(input=queries, size=D_KEY * N_HEAD, num_flatten_dims=2, bias_attr=False,
                  param_attr=fluid.initializer.Xavier(uniform=False, fan_in=D_MODEL * D_KEY, fan_out=N_HEAD * D_KEY))
    k = layers.fc(input=keys, size=D_KEY * N_HEAD, num_flatten_dims=2, bias_attr=False)
    v = layers.fc(input=values, size=D_KEY * N_HEAD, num_flatten_dims=2, bias_attr=False)

    def split_heads(x):
        reshaped = layers.reshape(x=x, shape=[0, 0, N_HEAD, x.shape[-1] // N_HEAD], inplace=True)
        return layers.transpose(x=reshaped, perm=[0, 2, 1, 3])

    q, k, v = split_heads(q), split_heads(k), split_heads(v)
    product = layers.matmul(x=q, y=k, transpose_y=True, alpha=D_KEY ** -0.5)
    product += attn_bias
    weights = layers.softmax(product)
    weights = layers.dropout(weights, dropout_prob=DROPOUT, seed=1, dropout_implementation="upscale_in_train",
                             is_test=False)
    out = layers.transpose(layers.matmul(weights, v), perm=[0, 2, 1, 3])
    out = layers.reshape(x=out, shape=[0, 0, out.shape[2] * out.shape[3]], inplace=True)
    return layers.fc(input=out, size=D_MODEL, num_flatten_dims=2, bias_attr=False)


def post_process(prev_out, out):
    out = layers.dropout(out, dropout_prob=DROPOUT, seed=2, dropout_implementation="upscale_in_train")
    out = out + prev_out if prev_out is not None else out
    return layers.layer_norm(out, begin_norm_axis=len(out.shape) - 1,
                             param_attr=fluid.initializer.Constant(1.0), bias_attr=fluid.initializer.Constant(0.0))


def encoder_layer(enc_input, attn_bias):
    attn = post_process(enc_input, multi_head_attention(enc_input, enc_input, enc_input, attn_bias))
    hidden = layers.fc(input=attn, size=D_INNER, num_flatten_dims=2, act="relu")
    return post_process(attn, layers.fc(input=hidden, size=D_MODEL, num_flatten_dims=2))


def position_table():
    position, dimension = np.arange(LENGTH)[:, None], np.arange(D_MODEL)[None, :]
    angle = position / 10000.0 ** (2 * (dimension // 2) / float(D_MODEL))
    return np.where(dimension % 2, np.cos(angle), np.sin(angle)).astype("float32")


def embed(word, pos):
    word_emb = layers.embedding(word, size=[VOCAB, D_MODEL], padding_idx=0, param_attr=fluid.ParamAttr(
        name="src_word_emb_table", initializer=fluid.initializer.Normal(0.0, D_MODEL ** -0.5)))
    word_emb = layers.scale(x=word_emb, scale=D_MODEL ** 0.5)
    pos_enc = layers.embedding(pos, size=[LENGTH, D_MODEL], param_attr=fluid.ParamAttr(
        name="src_pos_enc_table", trainable=False))
    pos_enc.stop_gradient = True
    both = layers.reshape(x=word_emb + pos_enc, shape=[-1, LENGTH, D_MODEL])
    return layers.dropout(both, dropout_prob=DROPOUT, seed=3, dropout_implementation="upscale_in_train")


def transformer():
    word = layers.data(name="src_word", shape=[BATCH, LENGTH, 1], dtype="int64", append_batch_size=False)
    pos = layers.data(name="src_pos", shape=[BATCH, LENGTH, 1], dtype="int64", append_batch_size=False)
    bias = layers.data(name="attn_bias", shape=[BATCH, N_HEAD, LENGTH, LENGTH], dtype="float32",
                       append_batch_size=False)
    lbl_word = layers.data(name="lbl_word", shape=[BATCH * LENGTH, 1], dtype="int64", append_batch_size=False)
    lbl_weight = layers.data(name="lbl_weight", shape=[BATCH * LENGTH, 1], dtype="float32", append_batch_size=False)
    output = encoder_layer(encoder_layer(embed(word, pos), bias), bias)
    predict = layers.reshape(layers.fc(input=output, size=VOCAB, num_flatten_dims=2, bias_attr=False),
                             shape=[-1, VOCAB], act=None)
    label = layers.label_smooth(label=layers.one_hot(input=lbl_word, depth=VOCAB), epsilon=0.1)
    cost = layers.softmax_with_cross_entropy(logits=predict, label=label, soft_label=True)
    weighted_cost = cost * lbl_weight
    sum_cost = layers.reduce_sum(weighted_cost)
    token_num = layers.reduce_sum(lbl_weight)
    token_num.stop_gradient = True
    return sum_cost, sum_cost / token_num, layers.softmax(predict), token_num


def batches(count):
    """Words to be given back with neighbours swapped; the last two places are padding in half of the samples."""
    rng = np.random.RandomState(4)
    for _ in range(count):
        words = rng.randint(1, VOCAB, size=(BATCH, LENGTH)).astype("int64")
        weight = np.ones((BATCH, LENGTH), dtype="float32")
        words[::2, -2:], weight[::2, -2:] = 0, 0
        bias = np.tile(np.where(weight == 0, -1e9, 0.0)[:, None, None, :], [1, N_HEAD, LENGTH, 1])
        target = words[:, [1, 0, 3, 2, 5, 4]]
        yield {"src_word": words[:, :, None], "src_pos": np.tile(np.arange(LENGTH)[None, :, None], [BATCH, 1, 1]),
               "attn_bias": bias.astype("float32"), "lbl_word": target.reshape(-1, 1),
               "lbl_weight": weight.reshape(-1, 1)}


def main():
    sum_cost, avg_cost, predict, token_num = transformer()
    test_program = fluid.default_main_program().clone(for_test=True)
    lr_decay = layers.learning_rate_scheduler.noam_decay(D_MODEL, 100)
    optimizer = fluid.optimizer.Adam(learning_rate=lr_decay * 0.5, beta1=0.9, beta2=0.98, epsilon=1e-9)
    optimizer.minimize(sum_cost)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    table = fluid.global_scope().find_var("src_pos_enc_table").get_tensor()
    table.set(position_table(), fluid.CPUPlace())

    costs, rates = [], []
    for feed in batches(300):
        cost, tokens, rate = exe.run(feed=feed, fetch_list=[avg_cost, token_num, lr_decay])
        assert tokens[0] == feed["lbl_weight"].sum()
        costs.append(cost[0])
        rates.append(rate[0])
    print("first=%f last=%f" % (costs[0], np.mean(costs[-10:])))
    print("rate0=%.6f rate99=%.6f rate299=%.6f" % (rates[0], rates[99], rates[299]))
    hits = exe.run(test_program, feed=feed, fetch_list=[predict])[0].argmax(1) == feed["lbl_word"][:, 0]
    print("accuracy=%f" % hits[feed["lbl_weight"][:, 0] > 0].mean())
    assert (np.array(table) == position_table()).all(), "the table of positions is not trained"


if __name__ == "__main__":
    main()
