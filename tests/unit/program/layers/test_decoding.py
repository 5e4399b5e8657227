"""Decoders: a target that is known, the best and drawn ids, and a beam, each against numpy."""

from itertools import product

import numpy as np
import pytest

from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.layers import decoding
from fleet_mpi.program.layers.activation import tanh
from fleet_mpi.program.layers.beam_decoder import BeamSearchDecoder
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.given_weights import embedding
from fleet_mpi.program.layers.math import matmul
from fleet_mpi.program.layers.reduction import reduce_sum
from fleet_mpi.program.layers.rnn_cells import RNNCell, rnn
from fleet_mpi.program.layers.tensor import fill_constant_batch_size_like
from tests.unit.program.differences import check_gradients

rng = np.random.default_rng(13)
WORDS, WIDTH = 5, 3
END = 1


class Plain(RNNCell):
    """tanh(x w + h u) with weights that are fed."""

    def __init__(self, dtype):
        self.w, self.u = fed("w", [WIDTH, WIDTH], dtype), fed("u", [WIDTH, WIDTH], dtype)

    def call(self, inputs, states):
        new = tanh(matmul(inputs, self.w) + matmul(states, self.u))
        return new, new


def fed(name, shape, dtype):
    var = static_data(name, shape, dtype)
    var.stop_gradient = not dtype.startswith("float")
    return var


def weights(dtype):
    return {"w": rng.normal(size=(WIDTH, WIDTH)).astype(dtype), "u": rng.normal(size=(WIDTH, WIDTH)).astype(dtype)}


@pytest.mark.parametrize("time_major", [False, True])
def test_a_known_target_is_decoded_as_rnn_runs_over_it_and_trains(time_major):
    x = fed("x", [4, 2, WIDTH] if time_major else [2, 4, WIDTH], "float64")
    lengths, h = static_data("lengths", [2], "int64"), fed("h", [2, WIDTH], "float64")
    cell = Plain("float64")
    helper = decoding.TrainingHelper(x, lengths, time_major=time_major)
    found, last, counts = decoding.dynamic_decode(decoding.BasicDecoder(cell, helper), inits=h, return_length=True,
                                                  output_time_major=time_major, impute_finished=True)
    plain, plain_last = rnn(cell, x, h, lengths, time_major=time_major)
    feed = {"x": rng.normal(size=x.shape), "h": rng.normal(size=(2, WIDTH)), "lengths": np.array([4, 2]),
            **weights("float64")}
    results = Executor().run(feed=feed,
                             fetch_list=[found.cell_outputs, plain, last, plain_last, counts, found.sample_ids])
    step = (0, slice(None)) if time_major else (slice(None), 0)
    np.testing.assert_allclose(results[0][step], results[1][step], rtol=1e-12)
    np.testing.assert_allclose(results[2], results[3], rtol=1e-12)
    assert results[4].tolist() == [4, 2]
    np.testing.assert_array_equal(results[5], results[0].argmax(-1))
    check_gradients(reduce_sum(found.cell_outputs * found.cell_outputs) + reduce_sum(last), [x, h, cell.w, cell.u],
                    feed)


def decoder_of(helper_class, **options):
    table, h = fed("table", [WORDS, WIDTH], "float32"), fed("h", [-1, WIDTH], "float32")
    start = fill_constant_batch_size_like(h, [-1], "int64", 0)
    helper = helper_class(lambda ids: embedding(ids, table), start, END, **options)
    out = fed("out", [WIDTH, WORDS], "float32")
    return decoding.BasicDecoder(Plain("float32"), helper, output_fn=lambda x: matmul(x, out)), h


def values():
    return {"table": rng.normal(size=(WORDS, WIDTH)).astype("float32"),
            "h": rng.normal(size=(3, WIDTH)).astype("float32"),
            "out": rng.normal(size=(WIDTH, WORDS)).astype("float32") * 3, **weights("float32")}


def test_the_best_id_is_the_next_input_until_the_end():
    decoder, h = decoder_of(decoding.GreedyEmbeddingHelper)
    found, _, lengths = decoding.dynamic_decode(decoder, inits=h, max_step_num=5, return_length=True)
    feed = values()
    ids, counts = Executor().run(feed=feed, fetch_list=[found.sample_ids, lengths])
    state, word, ended = feed["h"], np.zeros(3, int), np.zeros(3, bool)
    for step in range(ids.shape[1]):
        state = np.tanh(feed["table"][word] @ feed["w"] + state @ feed["u"])
        word = (state @ feed["out"]).argmax(1)
        np.testing.assert_array_equal(ids[:, step], word)
        assert (counts[ended] <= step).all()
        ended |= word == END
    assert ended.all() or ids.shape[1] == 6  # steps are numbered from 0 on, and the last one is max_step_num


def test_drawn_ids_follow_the_seed_of_the_program_and_differ_by_step():
    default_main_program().random_seed = 3
    decoder, h = decoder_of(decoding.SampleEmbeddingHelper, softmax_temperature=1000.0)
    found, _ = decoding.dynamic_decode(decoder, inits=h, max_step_num=20)
    feed = values()
    runs = [Executor().run(feed=feed, fetch_list=[found.sample_ids])[0] for _ in range(2)]
    np.testing.assert_array_equal(*runs)
    assert len(set(runs[0].ravel().tolist())) > 2


def best_sentences(feed, row, beam, steps):
    """The best sentences of a source by trying all of them, as long as the beam is wide enough to lose none."""
    found = []
    for words in product(range(WORDS), repeat=steps):
        state, last, total, ended = feed["h"][row], 0, 0.0, False
        for word in words:
            if ended:
                total += 0.0 if word == END else -np.inf
                continue
            state = np.tanh(feed["table"][last] @ feed["w"] + state @ feed["u"])
            logits = state @ feed["out"]
            total += logits[word] - np.log(np.exp(logits).sum())
            last, ended = word, word == END
        found.append((total, words))
    return [words for _, words in sorted(found, reverse=True)[:beam]]


def test_a_beam_that_is_wide_enough_finds_the_best_sentences():
    beam, steps = WORDS ** 2, 3
    table, h = fed("table", [WORDS, WIDTH], "float32"), fed("h", [-1, WIDTH], "float32")
    out = fed("out", [WIDTH, WORDS], "float32")
    decoder = BeamSearchDecoder(Plain("float32"), start_token=0, end_token=END, beam_size=beam,
                                embedding_fn=lambda ids: embedding(ids, table), output_fn=lambda x: matmul(x, out))
    ids, states = decoding.dynamic_decode(decoder, inits=h, max_step_num=steps - 1)
    feed = values()
    found, lengths = Executor().run(feed=feed, fetch_list=[ids, states.lengths])
    assert found.shape == (3, steps, beam) and lengths.shape == (3, beam)
    for row in range(3):
        want = best_sentences(feed, row, 4, steps)
        assert [tuple(found[row, :, i]) for i in range(4)] == want
        for i, words in enumerate(want):
            assert lengths[row, i] == (words.index(END) + 1 if END in words else steps)


def test_rows_are_repeated_for_their_beams():
    x = fed("x", [-1, 2], "float32")
    tiled = BeamSearchDecoder.tile_beam_merge_with_batch(x, 3)
    found, = Executor().run(feed={"x": np.array([[1, 2], [3, 4]], "float32")}, fetch_list=[tiled])
    assert found.tolist() == [[1, 2]] * 3 + [[3, 4]] * 3
