"""Translation with contrib's decoders: one StateCell for training and for the search, and a decode of one's own."""

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as layers
from paddle.fluid.contrib.decoder.beam_search_decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder

DICT, WORD_DIM, HIDDEN, BEAM, MAX_LENGTH = 12, 16, 32, 2, 6
START, END = 0, 1
BATCH = 16


def encoder():
    words = layers.data(name="src_word_id", shape=[1], dtype="int64", lod_level=1)
    embedded = layers.embedding(input=words, size=[DICT, WORD_DIM], param_attr=fluid.ParamAttr(name="vemb"))
    hidden, _ = layers.dynamic_lstm(input=layers.fc(input=embedded, size=HIDDEN * 4, act="tanh"), size=HIDDEN * 4)
    return layers.sequence_last_step(input=hidden)


def decoder_state_cell(context):
    state_cell = StateCell(inputs={"x": None}, states={"h": InitState(init=context, need_reorder=True)}, out_state="h")

    @state_cell.state_updater
    def updater(state_cell):
        h = layers.fc(input=[state_cell.get_input("x"), state_cell.get_state("h")], size=HIDDEN, act="tanh",
                      param_attr=[fluid.ParamAttr(name="step_word"), fluid.ParamAttr(name="step_state")],
                      bias_attr=fluid.ParamAttr(name="step_bias"))
        state_cell.set_state("h", h)

    return state_cell


def word_scores(state):
    return layers.fc(input=state, size=DICT, act="softmax", param_attr=fluid.ParamAttr(name="out_w"),
                     bias_attr=fluid.ParamAttr(name="out_b"))


def decoder_train(state_cell):
    words = layers.data(name="trg_word_id", shape=[1], dtype="int64", lod_level=1)
    embedded = layers.embedding(input=words, size=[DICT, WORD_DIM], param_attr=fluid.ParamAttr(name="vemb"))
    decoder = TrainingDecoder(state_cell)
    with decoder.block():
        current_word = decoder.step_input(embedded)
        decoder.state_cell.compute_state(inputs={"x": current_word})
        decoder.output(word_scores(decoder.state_cell.get_state("h")))
        decoder.state_cell.update_states()
    return decoder()


class SharedDecoder(BeamSearchDecoder):
    """Searches with the parameters that were trained."""

    def decode(self):
        with self.block():
            prev_ids = self.read_array(init=self._init_ids, is_ids=True)
            prev_scores = self.read_array(init=self._init_scores, is_scores=True)
            embedded = layers.embedding(prev_ids, [DICT, WORD_DIM], param_attr=fluid.ParamAttr(name="vemb"))
            self.state_cell.set_state("h", layers.sequence_expand(self.state_cell.get_state("h"), prev_scores))
            self.state_cell.compute_state(inputs={"x": embedded})
            state = layers.lod_reset(x=self.state_cell.out_state(), y=prev_scores)
            self.state_cell.set_state("h", state)
            topk_scores, topk_indices = layers.topk(word_scores(state), k=self._topk_size)
            accu_scores = layers.elementwise_add(x=layers.log(topk_scores), y=layers.reshape(prev_scores, [-1]), axis=0)
            selected_ids, selected_scores = layers.beam_search(prev_ids, prev_scores, topk_indices, accu_scores,
                                                               self._beam_size, end_id=self._end_id)
            with layers.Switch() as switch:
                with switch.case(layers.is_empty(selected_ids)):
                    self.early_stop()
                with switch.default():
                    self.state_cell.update_states()
                    self.update_array(prev_ids, selected_ids)
                    self.update_array(prev_scores, selected_scores)


def samples():
    """A sentence means the same words, each one further in the dictionary."""
    rng = np.random.RandomState(6)
    for _ in range(BATCH * 110):
        source = rng.randint(2, DICT - 1, size=rng.randint(1, 4))
        target = [int(word) + 1 for word in source]
        yield source.tolist(), [START] + target, target + [END]


def train(exe):
    main_program, startup = fluid.Program(), fluid.default_startup_program()
    startup.random_seed = 2
    with fluid.program_guard(main_program, startup), fluid.unique_name.guard():
        predicted = decoder_train(decoder_state_cell(encoder()))
        label = layers.data(name="trg_next_word", shape=[1], dtype="int64", lod_level=1)
        avg_cost = layers.mean(layers.cross_entropy(input=predicted, label=label))
        fluid.optimizer.Adam(learning_rate=0.01).minimize(avg_cost)
    exe.run(startup)
    feeder = fluid.DataFeeder([main_program.global_block().var(name) for name in
                               ("src_word_id", "trg_word_id", "trg_next_word")], fluid.CPUPlace(), program=main_program)
    costs = [exe.run(main_program, feed=feeder.feed(data), fetch_list=[avg_cost])[0][0]
             for data in paddle.batch(samples, batch_size=BATCH)()]
    print("first=%f last=%f" % (costs[0], np.mean(costs[-5:])))


def main():
    exe = fluid.Executor(fluid.CPUPlace())
    train(exe)
    infer_program = fluid.Program()
    with fluid.program_guard(infer_program, fluid.Program()), fluid.unique_name.guard():
        state_cell = decoder_state_cell(encoder())
        init_ids = layers.data(name="init_ids", shape=[1], dtype="int64", lod_level=2)
        init_scores = layers.data(name="init_scores", shape=[1], dtype="float32", lod_level=2)
        decoder = SharedDecoder(state_cell=state_cell, init_ids=init_ids, init_scores=init_scores, target_dict_dim=DICT,
                                word_dim=WORD_DIM, topk_size=BEAM, max_len=MAX_LENGTH, beam_size=BEAM, end_id=END)
        decoder.decode()
        translation_ids, translation_scores = decoder()

    sources = [[3, 7], [5], [9, 2, 4]]
    lod = [[1] * len(sources)] * 2
    ids, scores = exe.run(infer_program, feed={
        "src_word_id": fluid.create_lod_tensor(np.array(sum(sources, []), "int64").reshape(-1, 1),
                                               [[len(source) for source in sources]], fluid.CPUPlace()),
        "init_ids": fluid.create_lod_tensor(np.full((len(sources), 1), START, "int64"), lod, fluid.CPUPlace()),
        "init_scores": fluid.create_lod_tensor(np.zeros((len(sources), 1), "float32"), lod, fluid.CPUPlace())},
        fetch_list=[translation_ids, translation_scores], return_numpy=False)
    (by_source, by_sentence), found = ids.lod(), np.array(ids).flatten()
    right, stopped = 0, 1
    for source, first in zip(sources, by_source):
        best = found[by_sentence[first]:by_sentence[first + 1]].tolist()
        print("%s -> %s" % (source, best))
        right += best == [START] + [word + 1 for word in source] + [END]
        stopped &= len(best) < MAX_LENGTH + 1
    print("right=%d of=%d stopped=%d sentences=%d" % (right, len(sources), stopped, by_source[-1]))


if __name__ == "__main__":
    main()
