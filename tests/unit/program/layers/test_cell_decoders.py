"""Decoders over a cell: trained word by word, then searched with a beam; and what they refuse."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UsageError
from fleet_mpi.fluid.contrib.decoder.beam_search_decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder

layers = fluid.layers
SIZE = 4


def make_cell(context, reorder=True):
    """h <- tanh(x W + h U)."""
    cell = StateCell(inputs={"x": None}, states={"h": InitState(init=context, need_reorder=reorder)}, out_state="h")

    @cell.state_updater
    def updater(cell):
        cell.set_state("h", layers.fc([cell.get_input("x"), cell.get_state("h")], SIZE, act="tanh",
                                      param_attr=["W", "U"], bias_attr=False))
    return cell


def numpy_states(words, context, w, u):
    """All states of one sentence."""
    states, h = [], context
    for word in words:
        h = np.tanh(word @ w + h @ u)
        states.append(h)
    return states


def test_a_training_decoder_is_the_cell_at_every_word():
    words = layers.data("words", [3], lod_level=1)
    context = layers.data("context", [SIZE])
    decoder = TrainingDecoder(make_cell(context))
    with decoder.block():
        decoder.state_cell.compute_state(inputs={"x": decoder.step_input(words)})
        decoder.output(decoder.state_cell.out_state())
        decoder.state_cell.update_states()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    rng = np.random.default_rng(0)
    rows, first = rng.normal(size=(5, 3)).astype("float32"), rng.normal(size=(2, SIZE)).astype("float32")
    found, w, u = exe.run(feed={"words": (rows, [[2, 3]]), "context": first}, fetch_list=[decoder(), "W", "U"],
                          return_numpy=False)
    w, u = np.array(w), np.array(u)
    expected = numpy_states(rows[:2], first[0], w, u) + numpy_states(rows[2:], first[1], w, u)
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-5)


def searched(beam_size, max_len, vocabulary=6):
    """The ids that a decoder with fixed parameters finds, and the parameters."""
    context = layers.data("context", [SIZE])
    init_ids = layers.data("ids", [1], dtype="int64", lod_level=2)
    init_scores = layers.data("scores", [1], lod_level=2)
    decoder = BeamSearchDecoder(make_cell(context), init_ids, init_scores, vocabulary, 3, topk_size=vocabulary,
                                max_len=max_len, beam_size=beam_size, end_id=1, sparse_emb=False)
    decoder.decode()
    ids, scores = decoder()
    startup = fluid.default_startup_program()
    startup.random_seed = 4
    exe = fluid.Executor()
    exe.run(startup)
    for param in fluid.default_main_program().all_parameters():  # far enough apart for different words
        value = fluid.global_scope().find_var(param.name).get_tensor()
        value.set(value.numpy() * 4)
    first = np.random.default_rng(1).normal(size=(2, SIZE)).astype("float32")
    lod = [[1, 1], [1, 1]]
    found = exe.run(feed={"context": first, "ids": fluid.create_lod_tensor(np.zeros((2, 1), "int64"), lod),
                          "scores": fluid.create_lod_tensor(np.zeros((2, 1), "float32"), lod)},
                    fetch_list=[ids, scores], return_numpy=False)
    values = {param.name: fluid.global_scope().find_var(param.name).get_tensor().numpy()
              for param in fluid.default_main_program().all_parameters()}
    return found, first, values


def best_of_numpy(first, values, max_len):
    """[(score, words)] of all sentences of a tiny vocabulary, best first: what an endless beam would find."""
    table, out, bias = (values[name] for name in ("embedding_0.w_0", "fc_1.w_0", "fc_1.b_0"))
    live, done = [(0.0, [0], first)], []
    for _ in range(max_len):
        grown = []
        for score, words, h in live:
            state = np.tanh(table[words[-1]] @ values["W"] + h @ values["U"])
            logits = state @ out + bias
            logs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
            grown += [(score + logs[word], [*words, word], state) for word in range(len(table))]
        done += [one for one in grown if one[1][-1] == 1]
        live = [one for one in grown if one[1][-1] != 1]
    return sorted(live + done, key=lambda one: -one[0])


def test_a_wide_beam_finds_the_best_sentence_of_all():
    (ids, scores), first, values = searched(beam_size=30, max_len=3)
    sources, sentences = ids.lod()
    for number in range(2):
        best = best_of_numpy(first[number], values, 3)[0]
        begin, end = sentences[sources[number]:sources[number] + 2]
        assert np.array(ids)[begin:end].ravel().tolist() == best[1]
        assert float(np.array(scores)[end - 1].ravel()[0]) == pytest.approx(best[0], rel=1e-4)


def test_a_beam_of_one_is_greedy_and_ends_at_the_longest_length():
    (ids, _), first, values = searched(beam_size=1, max_len=4)
    assert len(ids.lod()[1]) == 3 and max(np.diff(ids.lod()[1])) <= 5


def test_a_constant_state_has_a_row_for_every_row_of_the_boot():
    state = InitState(init_boot=layers.data("x", [2]), shape=[-1, 7], value=0.5)
    found, = fluid.Executor().run(feed={"x": np.zeros((3, 2), "float32")}, fetch_list=[state.value])
    assert found.shape == (3, 7) and (found == 0.5).all() and not state.need_reorder


def test_what_is_not_as_it_must_be_is_refused():
    context = layers.data("context", [SIZE])
    with pytest.raises(UsageError, match="expected init, or init_boot"):
        InitState()
    with pytest.raises(ValueError, match="one of them as out_state; got 'c'"):
        StateCell(inputs={}, states={"h": InitState(init=context)}, out_state="c")
    with pytest.raises(ValueError, match=r"InitStates.*got \['h'\]"):
        StateCell(inputs={}, states={"h": context}, out_state="h")
    cell = make_cell(context)
    decoder = TrainingDecoder(cell)
    with pytest.raises(UsageError, match="in a decoder whose block has not ended"):
        TrainingDecoder(cell)
    with pytest.raises(UsageError, match="state_cell belongs within"):
        decoder.state_cell
    with pytest.raises(UsageError, match="the result belongs behind"):
        decoder()
    with pytest.raises(UsageError, match="no state 'c'"):
        make_cell(context).get_state("c")
    with pytest.raises(UsageError, match="'x' has no value yet"):
        make_cell(context).get_input("x")
