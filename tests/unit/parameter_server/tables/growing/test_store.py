"""The rows of a growing table: a dictionary in all but memory, and the bits of a table of fixed height."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.arrays import Rows
from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.kernels.reference import random, row_draws
from fleet_mpi.parameter_server.tables.growing import index as row_index, memory
from fleet_mpi.parameter_server.tables.growing.rules import GROWING_RULES
from fleet_mpi.parameter_server.tables.growing.store import RowStore
from fleet_mpi.update_rules import RULES

KEY = random.key_of(3, "table", "t")
ANY_ID = st.integers(-2 ** 63, 2 ** 63 - 1) | st.integers(-3, 20)
LIMITS = [-2 ** 63, 2 ** 63 - 1, 0, -1]
BUDGET = 64 << 20
RATE = np.array([0.1], np.float32)


def first_values(ids, out):
    row_draws.uniform(ids, out, KEY, -1.0, 1.0)


def new_store(width=3, dtype="float32", rule="adagrad", budget_bytes=BUDGET, keeps_scores=False, **hypers):
    return RowStore(width, dtype, rule, hypers, first_values, budget_bytes, keeps_scores)


def line(*ids):
    return np.array(ids, np.int64)


def drawn(ids, width=3, dtype="float32"):
    out = np.empty((len(ids), width), dtype)
    first_values(line(*ids), out)
    return out


def read(store, ids):
    out = np.empty((len(ids), store.width), store.dtype)
    store.read(line(*ids), out)
    return out


def update(store, ids, grads):
    store.update(store.add(ids), grads, RATE)


# ---------------------------------------------------------------------- a dictionary

UNIQUE = st.lists(ANY_ID, max_size=30, unique=True)
STEPS = st.lists(st.tuples(st.sampled_from(("update", "erase", "load", "read")), UNIQUE), max_size=12)


class Plain:
    """What a store is, as a dictionary of [values, moment, score]."""

    def __init__(self):
        self.rows = {}

    def update(self, ids, grads):
        for key, grad in zip(ids, grads):
            row = self.rows.setdefault(key, [drawn([key])[0], np.zeros(3, np.float32), 0])
            row[1] = row[1] + grad * grad
            row[0] = row[0] - RATE * grad / (np.sqrt(row[1]) + np.float32(1e-6))

    def erase(self, ids):
        return sum(self.rows.pop(key, None) is not None for key in ids)

    def load(self, ids, values, moments):
        for key, *parts in zip(ids, values, moments):
            self.rows[key] = [*parts, self.rows[key][2] if key in self.rows else 0]


def assert_holds(store, plain):
    assert store.count == len(plain.rows)
    ids, values, moments = store.ids(), store.values(), store.state("moment")
    assert sorted(ids.tolist()) == sorted(plain.rows)
    assert store.find(ids).tolist() == list(range(store.count))
    for key, value, moment, score in zip(ids.tolist(), values, moments, store.scores):
        np.testing.assert_array_equal([value, moment], plain.rows[key][:2])
        assert score == plain.rows[key][2]


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(0, 99))
def test_a_store_is_a_dictionary(steps, seed):
    rng, store, plain = np.random.default_rng(seed), new_store(keeps_scores=True), Plain()
    for step, (what, ids) in enumerate(steps):
        one, other = rng.standard_normal((2, len(ids), 3)).astype(np.float32)
        other = abs(other)
        if what == "update":
            update(store, line(*ids), one)
            plain.update(ids, one)
            store.scores[store.find(line(*ids))] = step
            for key in ids:
                plain.rows[key][2] = step
        elif what == "erase":
            assert store.erase(line(*ids, *ids[:2])) == plain.erase(ids)
        elif what == "load":
            store.load(line(*ids), one, {"moment": other})
            plain.load(ids, one, other)
        else:
            expected = [plain.rows[key][0] if key in plain.rows else drawn([key])[0] for key in ids]
            np.testing.assert_array_equal(read(store, ids * 2), np.reshape(expected * 2, (-1, 3)))
        assert_holds(store, plain)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 300)), min_size=3, max_size=8), st.integers(0, 9))
def test_rows_are_found_while_the_index_grows_and_rows_are_erased(batches, seed):
    rng, store, known = np.random.default_rng(seed), new_store(1, rule="sgd"), {}
    for added, erased in batches:
        ids = rng.integers(-2 ** 63, 2 ** 63 - 1, added)
        store.add(ids)
        known.update(dict.fromkeys(ids.tolist()))
        gone = rng.permutation(list(known))[:erased].astype(np.int64)
        assert store.erase(gone) == len(gone)
        for key in gone.tolist():
            del known[key]
        there = np.array(list(known), np.int64)
        assert sorted(store.find(there).tolist()) == list(range(len(known)))
        np.testing.assert_array_equal(store.ids()[store.find(there)], there)
        assert (store.find(gone) == -1).all()


def test_a_pull_changes_nothing_and_unknown_rows_are_as_they_would_begin():
    store = new_store()
    np.testing.assert_array_equal(read(store, [7, 7, *LIMITS]), drawn([7, 7, *LIMITS]))
    assert store.count == 0 and store.find(line(7)).tolist() == [-1]
    slots = store.add(line(7, *LIMITS, 7))
    assert slots.tolist() == [0, 1, 2, 3, 4, 0]
    np.testing.assert_array_equal(store.values(), drawn([7, *LIMITS]))


def test_an_erased_row_begins_anew():
    store = new_store(keeps_scores=True)
    update(store, line(4, 5), np.ones((2, 3), np.float32))
    store.scores[...] = 9
    assert store.erase(line(4, 4, 77)) == 1
    assert store.add(line(4)).tolist() == [1] and store.scores.tolist() == [9, 0]
    np.testing.assert_array_equal(read(store, [4]), drawn([4]))
    assert not store.state("moment")[1].any()


def test_nothing_to_do_is_done():
    store = new_store(keeps_scores=True)
    update(store, line(), np.empty((0, 3), np.float32))
    assert store.erase(line()) == store.count == 0
    store.load(line(), np.empty((0, 3), np.float32), {"moment": np.empty((0, 3), np.float32)})
    assert read(store, []).shape == (0, 3) and store.values().shape == (0, 3) and len(store.scores) == 0


def test_a_store_that_was_cleared_is_new():
    store = new_store(rule="adam")
    update(store, line(4, 5), np.ones((2, 3), np.float32))
    assert store.state("beta1_pow_acc") == np.float32(0.9) * np.float32(0.9)
    store.clear()
    assert store.count == 0 and store.state("beta1_pow_acc") == np.float32(0.9)
    update(store, line(5), np.zeros((1, 3), np.float32))
    np.testing.assert_array_equal(store.values(), drawn([5]))


# ---------------------------------------------------------------------- the bits of a table of fixed height

CASES = [("sgd", {}), ("momentum", {}), ("momentum", {"mu": 0.5, "use_nesterov": True, "rescale_grad": 0.25}),
         ("adagrad", {}), ("adagrad", {"epsilon": 1e-3, "initial_accumulator_value": 0.1}),
         ("adam", {}), ("adam", {"lazy_mode": True, "beta1": 0.5}), ("adamw", {"lazy_mode": True}),
         ("adamw", {"coeff": 0.0}), ("ftrl", {}), ("ftrl", {"l1": 0.1, "l2": 0.2, "lr_power": -0.3})]


def test_every_rule_has_a_twin():
    assert {*GROWING_RULES} == {name for name, _ in CASES} | {"adagrad_rowwise"}


def batches(rng, height, width, dtype):
    for _ in range(5):
        ids = rng.permutation(height)[:rng.integers(0, height)].astype(np.int64)
        yield ids, rng.standard_normal((len(ids), width)).astype(dtype)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("width", (1, 5, 16))
@pytest.mark.parametrize("name, hypers", CASES)
def test_a_growing_table_has_the_bits_of_a_table_of_fixed_height(name, hypers, width, dtype):
    rule, height = RULES[name], 40
    store, table = new_store(width, dtype, name, **hypers), drawn(range(height), width, dtype)
    states = rule.new_states(table, **hypers)
    run = rule.complete({key: value for key, value in hypers.items() if key in rule.hypers})
    for ids, grads in batches(np.random.default_rng(width), height, width, dtype):
        rule.run(table, Rows(ids, grads, height), RATE, *states, **run)
        update(store, ids, grads)
    np.testing.assert_array_equal(read(store, range(height)), table)
    for state, expected in zip(rule.states, states):
        np.testing.assert_array_equal(store.state(state.name),
                                      expected[store.ids()] if state.like_param else expected)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_rowwise_adagrad_keeps_the_mean_of_squares_of_a_row(dtype):
    store, table, moment = new_store(5, dtype, "adagrad_rowwise"), drawn(range(40), 5), np.zeros((40, 1))
    for ids, grads in batches(np.random.default_rng(1), 40, 5, dtype):
        moment[ids] += (grads.astype("float64") ** 2).mean(axis=1, keepdims=True)
        table[ids] -= RATE * grads / (np.sqrt(moment[ids]) + 1e-6)
        update(store, ids, grads)
    np.testing.assert_allclose(read(store, range(40)), table, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(store.state("moment"), moment[store.ids()], rtol=1e-5)


# ---------------------------------------------------------------------- what is refused, before anything has changed

def assert_refuses(error, text, store, call):
    before = store.ids().tolist(), store.values().tobytes()
    with pytest.raises(error, match=text):
        call()
    assert (store.ids().tolist(), store.values().tobytes()) == before


def test_wrong_calls_are_refused():
    store, ones = new_store(), np.ones((2, 3), np.float32)
    update(store, line(1, 2), ones)
    for text, call in (
            ("slot 1 at position 1 of 2 comes again", lambda: store.update(np.array([1, 1]), ones, RATE)),
            ("slot -1 at position 0", lambda: store.update(np.array([-1, 1]), ones, RATE)),
            ("slot 2 at position 1 .* none of the 2", lambda: store.update(np.array([1, 2]), ones, RATE)),
            (r"\(1, 3\), got \(2, 3\)", lambda: store.update(np.array([1]), ones, RATE)),
            ("of 2 ids 1 are different", lambda: store.load(line(5, 5), ones, {"moment": ones})),
            ("with their states .*'moment'", lambda: store.load(line(5, 6), ones, {})),
            ("look at 'other'", lambda: store.load(line(5, 6), ones, {"moment": ones, "other": ones})),
            ("'moment' of 2 rows is", lambda: store.load(line(5, 6), ones, {"moment": ones[:1]})),
            ("ids are a line of int64", lambda: store.add(np.ones(3))),
            ("read into a contiguous array", lambda: store.read(line(1), np.empty((1, 4), np.float32))),
            ("keeps no state 'momment'; did you mean 'moment'", lambda: store.state("momment"))):
        assert_refuses(UsageError, text, store, call)


@pytest.mark.parametrize("text, options", (
    ("'lamb', which moves rows .* expected one of sgd", {"rule": "lamb"}),
    ("'agadrad', which is unknown", {"rule": "agadrad"}),
    ("no hyper-parameter 'epsilom'; did you mean 'epsilon'", {"epsilom": 1.0}),
    ("'momentum' with regularization_coeff=0.5 would decay", {"rule": "momentum", "regularization_coeff": 0.5}),
    ("'adamw' with coeff=0.01 .* or lazy_mode=True", {"rule": "adamw"}),
    ("at least one element", {"width": 0}), ("float32 or float64, got int8", {"dtype": "int8"})))
def test_what_no_growing_table_can_be_is_refused(text, options):
    with pytest.raises(UsageError, match=text):
        new_store(**options)


def test_a_full_budget_refuses_with_rows_bytes_and_the_setting():
    store = new_store(16, budget_bytes=1 << 20)
    assert 1000 < store.capacity < (1 << 20) // (128 + 8)
    store.add(np.arange(store.capacity - 1))
    assert store.add(line(-5, -5)).tolist() == [store.capacity - 1] * 2   # one id, one row
    assert sum(store.nbytes.values()) <= 1 << 20
    some = line(3, -6)
    assert_refuses(EnvironmentProblem, rf"of {store.capacity:,} rows \([\d,]+ bytes\) cannot take 1 more: there is "
                   rf"room for {store.capacity:,} \(budget_bytes=1,048,576\)", store, lambda: store.add(some))
    store.erase(line(0))
    assert store.add(some).tolist() == [3, store.capacity - 1]


def test_memory_that_the_system_refuses_changes_nothing(monkeypatch):
    store = new_store(2, rule="sgd")
    store.add(np.arange(700))

    def refuse(*given):
        raise MemoryError
    monkeypatch.setattr(row_index.np, "zeros", refuse)
    assert_refuses(EnvironmentProblem, "of 700 rows cannot grow", store, lambda: store.add(np.arange(600, 900)))
    monkeypatch.undo()
    assert store.add(np.arange(600, 900)).tolist() == [*range(600, 900)]


def test_address_space_that_the_system_refuses_makes_a_smaller_table(monkeypatch):
    made = memory._reserved
    monkeypatch.setattr(memory, "_reserved", lambda shape, dtype: made(shape, dtype) if shape[0] < 70_000 else refuse())

    def refuse():
        raise OSError(12, "Cannot allocate memory")
    assert 10_000 < new_store().capacity < 70_000
    monkeypatch.setattr(memory, "_reserved", lambda shape, dtype: refuse())
    with pytest.raises(EnvironmentProblem, match="ulimit -v"):
        new_store()


# ---------------------------------------------------------------------- memory and shares

def test_the_index_grows_in_shares():
    store, index = new_store(1, rule="sgd", budget_bytes=1 << 30), None
    index = store._index
    grown, last = 0, index.moved
    for begin in range(0, 60_000, 100):
        was = store.nbytes["index"]
        store.add(np.arange(begin, begin + 100))
        assert index.moved - last <= row_index.SHARE * 100
        grown, last = grown + (store.nbytes["index"] != was), index.moved
    assert grown >= 6 and index.moved > 60_000 / 2
    assert store.find(np.arange(60_000)).tolist() == [*range(60_000)]


def test_a_batch_larger_than_the_index_is_taken_at_once():
    store = new_store(1, rule="sgd", budget_bytes=1 << 30)
    assert store.add(np.arange(100_000)).tolist() == [*range(100_000)]
    assert store.find(np.arange(100_000)).tolist() == [*range(100_000)]


@pytest.mark.parametrize("keeps_scores", (False, True))
def test_a_row_takes_at_most_21_bytes_beyond_values_and_states(keeps_scores):
    store = new_store(16, keeps_scores=keeps_scores, budget_bytes=1 << 30)
    size = 1 << 16
    for rows in (size // 2, size * 5 // 8, size * 3 // 4 - 1):
        store.add(np.arange(rows))
        held = store.nbytes
        assert held["rows"] == 128 * rows and held["padding"] == 0
        assert held["keys"] + held["index"] + held["scores"] <= 21 * rows
        assert (held["scores"] > 0) == keeps_scores


@pytest.mark.parametrize("width, rule, bytes_of_a_row", ((1, "sgd", 4), (3, "sgd", 16), (5, "adagrad", 64),
                                                         (16, "adagrad_rowwise", 128), (17, "adagrad", 192)))
def test_rows_are_padded_so_that_few_lines_are_touched(width, rule, bytes_of_a_row):
    store = new_store(width, rule=rule)
    store.add(line(1))
    assert store.nbytes["rows"] + store.nbytes["padding"] == bytes_of_a_row
    assert store.values().ctypes.data % 64 == 0
