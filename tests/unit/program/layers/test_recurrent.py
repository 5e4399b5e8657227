"""Recurrent layers: parameters, and that they learn what needs a memory."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, Tensor
from fleet_mpi.program.layers import recurrent as layers, sequence
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc


def shapes(program):
    return {param.name: param.shape for param in program.all_parameters()}


def test_lstm_has_a_weight_and_a_bias_with_peepholes(programs):
    hidden, cell = layers.dynamic_lstm(data("x", [12], lod_level=1), size=12)
    assert shapes(programs[0]) == {"lstm_0.w_0": (3, 12), "lstm_0.b_0": (1, 21)}
    assert hidden.shape == cell.shape == (-1, 3) and hidden.lod_level == 1


def test_lstm_without_peepholes_has_a_shorter_bias(programs):
    layers.dynamic_lstm(data("x", [12], lod_level=1), 12, use_peepholes=False)
    assert shapes(programs[0])["lstm_0.b_0"] == (1, 12)


def test_gru_has_a_weight_and_a_bias(programs):
    hidden = layers.dynamic_gru(data("x", [9], lod_level=1), 3)
    assert shapes(programs[0]) == {"gru_0.w_0": (3, 9), "gru_0.b_0": (1, 9)}
    assert hidden.shape == (-1, 3) and hidden.lod_level == 1


def test_single_steps_have_their_shapes(programs):
    x, h, c = data("x", [6]), data("h", [2]), data("c", [2])
    assert [var.shape for var in layers.gru_unit(x, h, 6)] == [(-1, 2), (-1, 2), (-1, 6)]
    assert [var.shape for var in layers.lstm_unit(x, h, c, forget_bias=1.0)] == [(-1, 2), (-1, 2)]
    assert shapes(programs[0]) == {"gru_unit_0.w_0": (2, 6), "gru_unit_0.b_0": (1, 6),
                                   "fc_0.w_0": (8, 8), "fc_0.b_0": (8,)}


def test_a_size_that_is_no_multiple_is_refused(programs):
    with pytest.raises(UsageError, match="dynamic_lstm: size: expected 4 x the hidden size, got 10"):
        layers.dynamic_lstm(data("x", [10], lod_level=1), 10)
    with pytest.raises(UsageError, match="always has a bias"):
        layers.dynamic_lstm(data("y", [12], lod_level=1), 12, bias_attr=False)


def recurrent_model(kind, x):
    if kind == "lstm":
        return layers.dynamic_lstm(fc(x, 32), 32)[0]
    return layers.dynamic_gru(fc(x, 24), 8)


def mean_square(block, one, other):
    for name in ("error", "square", "loss"):
        block.create_var(name=name, dtype="float32")
    block.append_op("elementwise_sub", {"X": [one], "Y": [other]}, {"Out": ["error"]})
    block.append_op("elementwise_mul", {"X": ["error"], "Y": ["error"]}, {"Out": ["square"]})
    block.append_op("mean", {"X": ["square"]}, {"Out": ["loss"]})
    return block.var("loss")


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_the_first_number_of_a_sequence_is_remembered_to_its_end(programs, kind):
    main, startup = programs
    last = sequence.sequence_last_step(recurrent_model(kind, data("x", [1], lod_level=1)))
    loss = mean_square(main.global_block(), fc(last, 1).name, data("y", [1]).name)
    pairs = append_backward(loss)
    scope, executor, rng = Scope(), Executor(), np.random.default_rng(0)
    startup.random_seed = 1
    executor.run(startup, scope=scope)
    x = Tensor(rng.uniform(-1, 1, (24, 1)).astype(np.float32))
    x.set_recursive_sequence_lengths([[3] * 8])
    x.array[2::3] = 0  # all sequences end alike, so only what was remembered can tell them apart
    losses = []
    for _ in range(1000):
        found = executor.run(main, feed={"x": x, "y": x.array[::3]}, scope=scope,
                             fetch_list=[loss, *(grad for _, grad in pairs)])
        for (param, _), grad in zip(pairs, found[1:]):
            # With a rate of 0.5 it depends on the last bits of a CPU's products whether the GRU learns.
            scope.find_var(param.name).get_tensor().array[...] -= 0.2 * grad
        losses.append(float(found[0][0]))
    assert losses[-1] < 0.2 * losses[0]
