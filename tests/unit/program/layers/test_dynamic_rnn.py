"""DynamicRNN: against the same recurrence written out sequence by sequence, and against differences."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import create_lod_tensor
from fleet_mpi.program.layers.activation import tanh
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.dynamic_rnn import DynamicRNN
from fleet_mpi.program.layers.lod_rank import lod_rank_table, max_sequence_len
from fleet_mpi.program.layers.math import matmul
from fleet_mpi.program.layers.reduction import reduce_sum
from fleet_mpi.program.layers.sequence import sequence_pool
from tests.unit.program.differences import check_gradients, gradients_of

rng = np.random.default_rng(5)
LENGTHS = [2, 4, 1, 3]
X, W, U, H0 = (rng.normal(size=size) for size in ((10, 3), (3, 2), (2, 2), (4, 2)))


def fed(name, shape, lod_level=0):
    var = static_data(name, shape, "float64", lod_level=lod_level)
    var.stop_gradient = False
    return var


def feed(**more):
    return {"x": create_lod_tensor(X.copy(), [LENGTHS], None), "w": W.copy(), "u": U.copy(), **more}


def network(init=None, need_reorder=False):
    x, w, u = fed("x", [-1, 3], 1), fed("w", [3, 2]), fed("u", [2, 2])
    rnn = DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        before = (rnn.memory(shape=[2], value=0.5, dtype="float64") if init is None
                  else rnn.memory(init=init, need_reorder=need_reorder))
        hidden = tanh(matmul(now, w) + matmul(before, u))
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return [x, w, u], rnn()


def by_sequence(first):
    found, begin = [], 0
    for number, length in enumerate(LENGTHS):
        h = first[number]
        for row in range(begin, begin + length):
            h = np.tanh(X[row] @ W + h @ U)
            found.append(h)
        begin += length
    return np.array(found)


def test_every_sequence_has_its_own_steps():
    _, out = network()
    found, = Executor().run(feed=feed(), fetch_list=[out], return_numpy=False)
    np.testing.assert_allclose(found.numpy(), by_sequence(np.full((4, 2), 0.5)), rtol=1e-12)
    assert found.recursive_sequence_lengths() == [LENGTHS]


def test_a_first_state_in_the_order_of_the_sequences():
    _, out = network(fed("h0", [-1, 2]), need_reorder=True)
    found, = Executor().run(feed=feed(h0=H0), fetch_list=[out])
    np.testing.assert_allclose(found, by_sequence(H0), rtol=1e-12)


def test_a_first_state_in_the_order_of_the_rank_table():
    _, out = network(fed("h0", [-1, 2]))
    order = [1, 3, 0, 2]
    found, = Executor().run(feed=feed(h0=H0), fetch_list=[out])
    first = np.empty_like(H0)
    first[order] = H0
    np.testing.assert_allclose(found, by_sequence(first), rtol=1e-12)


def test_gradients_reach_inputs_weights_and_first_states():
    h0 = fed("h0", [-1, 2])
    sources, out = network(h0, need_reorder=True)
    check_gradients(reduce_sum(out * out), [*sources, h0], feed(h0=H0.copy()))


def test_a_linear_recurrence_has_the_gradient_of_its_closed_form():
    x, u = fed("x", [-1, 2], 1), fed("u", [2, 2])
    rnn = DynamicRNN()
    with rnn.block():
        now, before = rnn.step_input(x), rnn.memory(shape=[2], dtype="float64")
        hidden = now + matmul(before, u)
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    last = sequence_pool(rnn(), "last")
    rows = rng.normal(size=(5, 2))
    _, (dx, _) = gradients_of(reduce_sum(last), [x, u], {"x": create_lod_tensor(rows, [[3, 2]], None), "u": U})
    ones = np.ones(2)
    want = [U @ U @ ones, U @ ones, ones, U @ ones, ones]
    np.testing.assert_allclose(dx, want, rtol=1e-13)


def test_what_each_sequence_keeps_at_every_step():
    x, s = fed("x", [-1, 3], 1), fed("s", [-1, 3])
    rnn = DynamicRNN()
    with rnn.block():
        rnn.output(rnn.step_input(x) * rnn.static_input(s))
    out = rnn()
    static = rng.normal(size=(4, 3))
    found, = Executor().run(feed={"x": feed()["x"], "s": static}, fetch_list=[out])
    np.testing.assert_allclose(found, X * static[np.repeat(np.arange(4), LENGTHS)])
    check_gradients(reduce_sum(out * out), [x, s], {"x": feed()["x"], "s": static})


def test_attention_over_a_sequence_that_each_sequence_keeps():
    x, s = fed("x", [-1, 3], 1), fed("s", [-1, 3], 1)
    rnn = DynamicRNN()
    with rnn.block():
        rnn.step_input(x)
        rnn.output(sequence_pool(rnn.static_input(s), "sum"))
    out = rnn()
    kept = create_lod_tensor(rng.normal(size=(8, 3)), [[1, 3, 2, 2]], None)
    found, = Executor().run(feed={"x": feed()["x"], "s": kept}, fetch_list=[out])
    sums = np.add.reduceat(kept.numpy(), [0, 1, 4, 6])
    np.testing.assert_allclose(found, sums[np.repeat(np.arange(4), LENGTHS)])
    check_gradients(reduce_sum(out * out), [s], {"x": feed()["x"], "s": kept})


def test_two_inputs_two_states_and_two_results():
    x, y = fed("x", [-1, 3], 1), fed("y", [-1, 3], 1)
    rnn = DynamicRNN()
    with rnn.block():
        a, b = rnn.step_input(x), rnn.step_input(y)
        one, two = rnn.memory(shape=[3], dtype="float64"), rnn.memory(shape=[3], value=1.0, dtype="float64")
        rnn.update_memory(one, two)
        rnn.update_memory(two, tanh(one + a * b))
        rnn.output(one, a * two)
    first, second = rnn()
    y_rows = create_lod_tensor(rng.normal(size=(10, 3)), [LENGTHS], None)
    check_gradients(reduce_sum(first * second), [x, y], {"x": feed()["x"], "y": y_rows})


def test_sequences_of_sequences_go_by_their_outer_level():
    x = fed("x", [-1, 3], 2)
    rnn = DynamicRNN()
    with rnn.block():
        part = rnn.step_input(x)
        rnn.output(sequence_pool(part, "sum"), part)
    sums, same = rnn()
    given = create_lod_tensor(X.copy(), [[1, 3], [2, 3, 1, 4]], None)
    total, again = Executor().run(feed={"x": given}, fetch_list=[sums, same], return_numpy=False)
    np.testing.assert_allclose(total.numpy(), np.add.reduceat(X, [0, 2, 5, 6]))
    np.testing.assert_array_equal(again.numpy(), X)
    assert again.recursive_sequence_lengths() == [[1, 3], [2, 3, 1, 4]]
    check_gradients(reduce_sum(sums * sums), [x], {"x": given})


def test_a_rank_table_knows_the_longest():
    x = fed("x", [-1, 3], 1)
    found, = Executor().run(feed={"x": feed()["x"]}, fetch_list=[max_sequence_len(lod_rank_table(x))])
    assert found.tolist() == [4] and found.dtype == np.int64


def test_data_without_sequences_are_refused():
    x = fed("x", [-1, 3])
    with pytest.raises(ProgramError, match="has no LoD"):
        Executor().run(feed={"x": X}, fetch_list=[max_sequence_len(lod_rank_table(x))])


@pytest.mark.parametrize("wrong, text", [
    (lambda rnn, x: rnn.memory(shape=[2]), "step_input first"), (lambda rnn, x: rnn.output(1.0), "a variable"),
    (lambda rnn, x: [rnn.step_input(x), rnn.memory()], "init or shape"),
    (lambda rnn, x: rnn.update_memory(x, x), "no memory"), (lambda rnn, x: None, "step_input in its block")])
def test_wrong_use_within_the_block_says_what_is_expected(wrong, text):
    x, rnn = fed("x", [-1, 3], 1), DynamicRNN()
    with pytest.raises(UsageError, match=text):
        with rnn.block():
            wrong(rnn, x)


def test_wrong_use_outside_of_the_block_says_what_is_expected():
    rnn = DynamicRNN()
    with pytest.raises(UsageError, match="within"):
        rnn.step_input(fed("x", [-1, 3], 1))
    with pytest.raises(UsageError, match="output"):
        rnn()
