"""Ops of program/ops/embedding.py."""

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import Program, program_guard
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.layers.manipulation import concat
from fleet_mpi.program.layers.math import elementwise_mul
from fleet_mpi.program.layers.reduction import mean
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def picked(inputs, attrs):
    """Row by row, zeros for padding."""
    given = inputs["Ids"]
    given, lod = given if isinstance(given, tuple) else (given, None)
    padding = attrs.get("padding_idx", -1)
    flat = np.array([np.zeros(inputs["W"].shape[1]) if i == padding and padding >= 0 else inputs["W"][i]
                     for i in given.ravel()])
    shape = given.shape[:-1] if attrs["form"] == 1 else given.shape
    return {"Out": flat.reshape(shape + (inputs["W"].shape[1],))}


def table(rows=5, width=3):
    return rng.normal(size=(rows, width))


CASES = []
for is_sparse in (False, True):
    for padding in (-1, 2):
        attrs = {"is_sparse": is_sparse, "padding_idx": padding}
        note = f"{'rows' if is_sparse else 'dense'} padding {padding}"
        CASES += [
            Case("lookup_table", {"W": table(), "Ids": np.array([[2], [0], [2], [4]])}, {**attrs, "form": 1}, picked,
                 grads="W", note=note),
            Case("lookup_table", {"W": table(), "Ids": np.array([[[1], [2]], [[1], [1]]])}, {**attrs, "form": 1},
                 picked, grads="W", note="3-d " + note),
            Case("lookup_table_v2", {"W": table(), "Ids": np.array([[2, 0, 3]])}, {**attrs, "form": 2}, picked,
                 grads="W", note=note),
            Case("lookup_table_v2", {"W": table(4, 1), "Ids": np.array([3, 3, 2], "int32")}, {**attrs, "form": 2},
                 picked, grads="W", note="int32 " + note),
        ]
CASES.append(Case("lookup_table", {"W": table(), "Ids": (np.array([[2], [0], [1]]), [[1, 2]])}, {"form": 1}, picked,
                  lods={"Out": [[1, 2]]}, note="sequences"))

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("wrong", [5, -1])
def test_an_id_outside_is_an_error_that_names_it_and_the_table(wrong):
    case = Case("lookup_table", {"W": table(), "Ids": np.array([[1], [wrong]])}, {"form": 1}, {"Out": table(2)})
    with pytest.raises(ProgramError, match=rf"id {wrong} at position 1 .*'W_0' of 5 rows"):
        Built(case).run(["Out_out_0"])


@pytest.mark.parametrize("bad, text", [(np.array([1, 2]), r"\[\.\.\., 1\]"), (np.array([[1.0]]), "whole numbers")])
def test_ids_of_another_shape_or_kind_are_refused(bad, text):
    with pytest.raises(ProgramError, match=text):
        Built(Case("lookup_table", {"W": table(), "Ids": bad}, {}, {"Out": table(2)}))


def two_lookups(is_sparse):
    main, startup = Program(), Program()
    main.random_seed = startup.random_seed = 5
    with program_guard(main, startup):
        parts = [embedding(data(name, [1], dtype="int64"), [6, 2], is_sparse, param_attr="table") for name in "ab"]
        loss = mean(elementwise_mul(concat(parts, axis=1), concat(parts, axis=1)))
        pairs = append_backward(loss)
    return main, startup, pairs


def test_a_table_used_twice_gets_one_row_gradient_equal_to_the_dense_one():
    feed = {"a": np.array([[1], [4]]), "b": np.array([[4], [4]])}
    found = {}
    for is_sparse in (False, True):
        main, startup, pairs = two_lookups(is_sparse)
        executor, scope = Executor(), Scope()
        executor.run(startup, scope=scope)
        found[is_sparse], = executor.run(main, feed, [pairs[0][1]], scope=scope, return_numpy=False)
    assert isinstance(found[True], Rows) and len(found[True]) == 4
    np.testing.assert_allclose(found[True].to_dense(), np.asarray(found[False]), rtol=1e-6)


def test_row_gradients_keep_their_memory_until_they_are_used():
    """The values lie in the output's gradient; ops in between must not take that memory."""
    main, startup = Program(), Program()
    with program_guard(main, startup):
        ids_fed = data("ids", [1], dtype="int64")
        rows = embedding(ids_fed, [50, 300], is_sparse=True, param_attr="table")
        loss = mean(elementwise_mul(rows, rows))
        (_, grad), = append_backward(loss)
        block = main.global_block()
        last = loss.name
        for i in range(6):  # large temporaries, each gone at once
            block.append_op("fill_constant", outputs={"Out": [f"big{i}"]}, attrs={"shape": [4096, 300], "value": 9.0})
            block.append_op("mean", {"X": [f"big{i}"]}, {"Out": [f"small{i}"]})
            block.append_op("elementwise_add", {"X": [last], "Y": [f"small{i}"]}, {"Out": [f"sum{i}"]})
            last = f"sum{i}"
        block.append_op("sum", {"X": [grad, grad]}, {"Out": ["twice"]})
    executor, scope = Executor(), Scope()
    executor.run(startup, scope=scope)
    feed = {"ids": np.arange(40).reshape(-1, 1) % 7}
    total, twice = executor.run(main, feed, [last, "twice"], scope=scope)
    values = np.array(scope.find_var("table").get_tensor())
    want = np.zeros_like(values)
    for i in feed["ids"].ravel():
        want[i] += 2 * 2 * values[i] / (40 * 300)
    np.testing.assert_allclose(twice, want, rtol=1e-4)
    assert abs(float(total) - 54) < 1
