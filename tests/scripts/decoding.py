"""Translation in the manner of the machine translation chapter: a plain decoder, searched with a beam."""

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as pd

DICT, WORD_DIM, HIDDEN, BEAM, MAX_LENGTH = 12, 16, 32, 2, 6
START, END = 0, 1
BATCH = 16


def encoder():
    src_word_id = pd.data(name="src_word_id", shape=[1], dtype="int64", lod_level=1)
    src_embedding = pd.embedding(input=src_word_id, size=[DICT, WORD_DIM], dtype="float32", is_sparse=True,
                                 param_attr=fluid.ParamAttr(name="vemb"))
    fc1 = pd.fc(input=src_embedding, size=HIDDEN * 4, act="tanh")
    lstm_hidden0, lstm_0 = pd.dynamic_lstm(input=fc1, size=HIDDEN * 4)
    return pd.sequence_last_step(input=lstm_hidden0)


def step(word_embedding, pre_state):
    """One step of the decoder, the same parameters in training and in the search."""
    state = pd.fc(input=[word_embedding, pre_state], size=HIDDEN, act="tanh",
                  param_attr=[fluid.ParamAttr(name="step_word"), fluid.ParamAttr(name="step_state")],
                  bias_attr=fluid.ParamAttr(name="step_bias"))
    score = pd.fc(input=state, size=DICT, act="softmax", param_attr=fluid.ParamAttr(name="out_w"),
                  bias_attr=fluid.ParamAttr(name="out_b"))
    return state, score


def train_program(context):
    """The decoder unrolled: three target words of every sentence, then the end."""
    state, costs = context, []
    words = [pd.data(name="word_%d" % i, shape=[1], dtype="int64") for i in range(5)]
    for previous, following in zip(words[:-1], words[1:]):
        embedding = pd.embedding(input=previous, size=[DICT, WORD_DIM], param_attr=fluid.ParamAttr(name="vemb"),
                                 is_sparse=True)
        state, score = step(embedding, state)
        costs.append(pd.mean(pd.cross_entropy(input=score, label=following)))
    return words, pd.sums(costs) / 4.0


def decode(context):
    """The words and scores of the best sentences, found by the chapter's loop."""
    array_len = pd.fill_constant(shape=[1], dtype="int64", value=MAX_LENGTH)
    counter = pd.zeros(shape=[1], dtype="int64", force_cpu=True)
    state_array = pd.create_array("float32")
    pd.array_write(context, array=state_array, i=counter)
    ids_array, scores_array = pd.create_array("int64"), pd.create_array("float32")
    init_ids = pd.data(name="init_ids", shape=[1], dtype="int64", lod_level=2)
    init_scores = pd.data(name="init_scores", shape=[1], dtype="float32", lod_level=2)
    pd.array_write(init_ids, array=ids_array, i=counter)
    pd.array_write(init_scores, array=scores_array, i=counter)

    cond = pd.less_than(x=counter, y=array_len)
    while_op = pd.While(cond=cond)
    with while_op.block():
        pre_ids = pd.array_read(array=ids_array, i=counter)
        pre_state = pd.array_read(array=state_array, i=counter)
        pre_score = pd.array_read(array=scores_array, i=counter)
        pre_state_expanded = pd.sequence_expand(pre_state, pre_score)
        pre_ids_emb = pd.embedding(input=pre_ids, size=[DICT, WORD_DIM], dtype="float32", is_sparse=True,
                                   param_attr=fluid.ParamAttr(name="vemb"))
        current_state, current_score = step(pre_ids_emb, pre_state_expanded)
        current_state_with_lod = pd.lod_reset(x=current_state, y=pre_score)
        topk_scores, topk_indices = pd.topk(current_score, k=BEAM)
        accu_scores = pd.elementwise_add(x=pd.log(topk_scores), y=pd.reshape(pre_score, shape=[-1]), axis=0)
        selected_ids, selected_scores = pd.beam_search(pre_ids, pre_score, topk_indices, accu_scores, BEAM,
                                                       end_id=END, level=0)
        with pd.Switch() as switch:
            with switch.case(pd.is_empty(selected_ids)):
                pd.fill_constant(shape=[1], value=0, dtype="bool", force_cpu=True, out=cond)
            with switch.default():
                pd.increment(x=counter, value=1, in_place=True)
                pd.array_write(current_state_with_lod, array=state_array, i=counter)
                pd.array_write(selected_ids, array=ids_array, i=counter)
                pd.array_write(selected_scores, array=scores_array, i=counter)
                length_cond = pd.less_than(x=counter, y=array_len)
                finish_cond = pd.logical_not(pd.is_empty(x=selected_ids))
                pd.logical_and(x=length_cond, y=finish_cond, out=cond)
    return pd.beam_search_decode(ids=ids_array, scores=scores_array, beam_size=BEAM, end_id=END)


def samples():
    """A sentence of three words means the same words, each one further in the dictionary."""
    rng = np.random.RandomState(6)
    for _ in range(BATCH * 110):
        source = rng.randint(2, DICT - 1, size=rng.randint(1, 3))
        target = [START] + [int(word) + 1 for word in source] + [END] * 4
        yield [source.tolist()] + target[:5]


def train(exe):
    main_program, startup = fluid.Program(), fluid.default_startup_program()
    startup.random_seed = 2
    with fluid.program_guard(main_program, startup), fluid.unique_name.guard():
        words, avg_cost = train_program(encoder())
        fluid.optimizer.Adam(learning_rate=0.01).minimize(avg_cost)
    exe.run(startup)
    feeds = [main_program.global_block().var("src_word_id")] + words
    feeder = fluid.DataFeeder(feeds, fluid.CPUPlace(), program=main_program)
    costs = [exe.run(main_program, feed=feeder.feed(data), fetch_list=[avg_cost])[0][0]
             for data in paddle.batch(samples, batch_size=BATCH)()]
    print("first=%f last=%f" % (costs[0], np.mean(costs[-5:])))


def main():
    exe = fluid.Executor(fluid.CPUPlace())
    train(exe)
    infer_program = fluid.Program()
    with fluid.program_guard(infer_program, fluid.Program()), fluid.unique_name.guard():
        translation_ids, translation_scores = decode(encoder())

    sources = [[3, 7], [5], [9, 2]]
    count = len(sources)
    lod = [[1] * count, [1] * count]
    init_ids = fluid.create_lod_tensor(np.full((count, 1), START, dtype="int64"), lod, fluid.CPUPlace())
    init_scores = fluid.create_lod_tensor(np.zeros((count, 1), dtype="float32"), lod, fluid.CPUPlace())
    words = fluid.create_lod_tensor(np.array(sum(sources, []), dtype="int64").reshape(-1, 1),
                                    [[len(source) for source in sources]], fluid.CPUPlace())
    ids, scores = exe.run(infer_program, feed={"src_word_id": words, "init_ids": init_ids, "init_scores": init_scores},
                          fetch_list=[translation_ids, translation_scores], return_numpy=False)
    lod_level_1, found = ids.lod()[1], np.array(ids).flatten()
    right = 0
    for i, source in enumerate(sources):
        first = ids.lod()[0][i]
        best = [int(w) for w in found[lod_level_1[first]:lod_level_1[first + 1]]]
        print("%s -> %s" % (source, best))
        right += best[1:len(source) + 1] == [word + 1 for word in source]
    print("right=%d of=%d beams=%d" % (right, count, ids.lod()[0][-1]))
    assert np.array(scores).shape[0] == found.shape[0]


if __name__ == "__main__":
    main()
