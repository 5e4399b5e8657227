"""Ops of program/ops/click.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels.reference.xxhash import hash_rows
from fleet_mpi.program.build.backward import gradients
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import program_guard
from fleet_mpi.program.layers.reduction import mean
from tests.unit.program.ops.checking import Built, Case, check_forward, checks

rng = np.random.default_rng(0)


def normed(inputs, attrs):
    size, total, squares = (inputs[slot] for slot in ("BatchSize", "BatchSum", "BatchSquareSum"))
    means, scales = total / size, np.sqrt(size / squares)
    y = (inputs["X"] - means) * scales
    if "scale_w" in inputs:
        y = y * inputs["scale_w"] + inputs["bias"]
    width = attrs.get("slot_dim", -1)
    if width > 0:
        y = y * np.repeat(inputs["X"][:, ::width] != 0, width, axis=1)
    return {"Y": y, "Means": means, "Scales": scales}


def statistics(columns):
    return {"BatchSize": rng.uniform(5, 9, columns), "BatchSum": rng.normal(size=columns),
            "BatchSquareSum": rng.uniform(5, 9, columns)}


def shown(x):
    x[::2, 0] = x[1, 2] = 0.0
    return x


def counted(inputs, attrs):
    x = inputs["X"][0] if isinstance(inputs["X"], tuple) else inputs["X"]
    if not attrs["use_cvm"]:
        return {"Y": x[:, 2:]}
    logs = np.log(x[:, :2] + 1)
    return {"Y": np.concatenate([logs[:, :1], logs[:, 1:] - logs[:, :1], x[:, 2:]], 1)}


def hashed(inputs, attrs):
    x = inputs["X"][0] if isinstance(inputs["X"], tuple) else inputs["X"]
    out, count = np.empty(x[..., 0].size, np.uint64), attrs["num_hash"]
    columns = []
    for seed in range(count):
        hash_rows.reference(x.reshape(-1, x.shape[-1]), seed, out)
        columns.append([int(one) % attrs["mod_by"] for one in out])
    return {"Out": np.array(columns).T.reshape(*x.shape[:-1], count, 1)}


TAGS = (np.array([[1], [7], [2], [1], [3], [9]]), [[2, 1, 1, 2]])
CASES = [
    Case("data_norm", {"X": rng.normal(size=(4, 3)), **statistics(3)}, {}, normed, grads="X", by="Y"),
    Case("data_norm", {"X": rng.normal(size=(4, 3)), **statistics(3), "scale_w": rng.normal(size=3),
                       "bias": rng.normal(size=3)}, {"enable_scale_and_shift": True}, normed,
         grads="X scale_w bias", by="Y", note="scale and shift"),
    Case("data_norm", {"X": shown(rng.normal(size=(5, 4))), **statistics(4)}, {"slot_dim": 2}, normed, note="slots"),
    Case("cvm", {"X": rng.uniform(0, 5, (4, 5)), "CVM": np.ones((4, 2))}, {"use_cvm": True}, counted),
    Case("cvm", {"X": (rng.uniform(0, 5, (4, 5)), [[3, 1]]), "CVM": np.ones((2, 2))}, {"use_cvm": False}, counted,
         lods={"Y": [[3, 1]]}, note="without"),
    Case("filter_by_instag", {"Ins": rng.normal(size=(4, 3)), "Ins_tag": TAGS, "Filter_tag": np.array([1, 4])},
         {"is_lod": False}, lambda inputs, attrs: {
             "Out": inputs["Ins"][[0, 2]], "LossWeight": np.ones((2, 1)), "IndexMap": np.array([[0, 0, 1], [1, 2, 1]])},
         grads="Ins", lods={"Out": [[1, 1]]}, note="rows"),
    Case("filter_by_instag", {"Ins": (rng.normal(size=(7, 3)), [[2, 1, 3, 1]]), "Ins_tag": TAGS,
                              "Filter_tag": np.array([2, 1])}, {}, lambda inputs, attrs: {
             "Out": inputs["Ins"][0][:6], "LossWeight": np.ones((3, 1)),
             "IndexMap": np.array([[0, 0, 2], [2, 2, 1], [3, 3, 3]])}, grads="Ins", lods={"Out": [[2, 1, 3]]},
         note="sequences"),
    Case("filter_by_instag", {"Ins": rng.normal(size=(4, 3)), "Ins_tag": TAGS, "Filter_tag": np.array([5])},
         {"is_lod": False, "out_val_if_empty": 6}, {"Out": np.full((1, 3), 6.0), "LossWeight": np.zeros((1, 1)),
                                                    "IndexMap": np.array([[0, 1, 1]])}, note="nothing left"),
    Case("hash", {"X": rng.integers(0, 99, (4, 2))}, {"num_hash": 3, "mod_by": 1000}, hashed),
    Case("hash", {"X": (rng.integers(0, 99, (4, 1)).astype(np.int32), [[1, 3]])}, {"num_hash": 1, "mod_by": 50}, hashed,
         lods={"Out": [[1, 3]]}, note="int32"),
]
test_forward, test_gradient, test_device = checks(CASES)


def gradient_of(case):
    built = Built(case, with_grad=True)
    return built, built.run(built.gradients)[0]


@pytest.mark.parametrize("use_cvm", [True, False])
def test_the_gradient_of_counts_is_the_counts_themselves_as_in_the_original(use_cvm):
    counts = np.array([[1.0, 0.0], [1.0, 1.0]])
    case = Case("cvm", {"X": (rng.uniform(0, 5, (4, 5)), [[3, 1]]), "CVM": counts}, {"use_cvm": use_cvm}, counted,
                grads="X", by="Y")
    built, found = gradient_of(case)
    np.testing.assert_array_equal(found[:, :2], counts[[0, 0, 0, 1]])
    np.testing.assert_array_equal(found[:, 2:], built.weights["Y_out_0"][:, 2 if use_cvm else 0:])


def test_a_slot_that_was_not_shown_gets_no_gradient():
    case = Case("data_norm", {"X": shown(rng.normal(size=(5, 4))), **statistics(4)}, {"slot_dim": 2}, normed, "X", "Y")
    _, found = gradient_of(case)
    np.testing.assert_array_equal(found == 0, np.repeat(case.inputs["X"][:, ::2] == 0, 2, axis=1))


def with_statistics(trains, is_test=False):
    """The statistics after a run, and what they were."""
    case = Case("data_norm", {"X": rng.normal(size=(4, 3)), **statistics(3)},
                {"summary_decay_rate": 0.5, "epsilon": 0.01, "is_test": is_test}, normed,
                persistable="BatchSize BatchSum BatchSquareSum")
    built = Built(case)
    op, names = built.program.global_block().ops[0], [f"{slot}_0" for slot in case.persistable]
    op.outputs.update({slot + "Out": [name] for slot, name in zip(case.persistable, names)})
    if trains:
        with program_guard(built.program):
            gradients(mean(built.program.global_block().var("Y_out_0")), built.program.global_block().var("X_0"))
    Executor().run(built.program, built.feed, ["Y_out_0"], scope=built.scope)
    return case.inputs, [np.array(built.scope.array(name)) for name in names]


def test_a_program_that_trains_adds_the_batch_to_sums_that_decay_in_doubt_as_the_originals_server_does():
    given, (size, total, squares) = with_statistics(trains=True)
    x, means = given["X"], given["BatchSum"] / given["BatchSize"]
    np.testing.assert_allclose(size, given["BatchSize"] / 2 + 4)
    np.testing.assert_allclose(total, given["BatchSum"] / 2 + x.sum(0))
    np.testing.assert_allclose(squares, given["BatchSquareSum"] / 2 + ((x - means) ** 2).sum(0) + 4 * 0.01)


@pytest.mark.parametrize("options", [{"trains": False}, {"trains": True, "is_test": True}])
def test_a_program_that_does_not_train_leaves_the_sums_as_they_are(options):
    given, found = with_statistics(**options)
    for slot, value in zip(("BatchSize", "BatchSum", "BatchSquareSum"), found):
        np.testing.assert_array_equal(value, given[slot])


@pytest.mark.parametrize("case, text", [
    (Case("data_norm", {"X": np.ones((2, 3)), **statistics(2)}, {}, {"Y": 0, "Means": 0, "Scales": 0}),
     "expected BatchSize of 3 numbers"),
    (Case("filter_by_instag", {"Ins": np.ones((3, 2)), "Ins_tag": TAGS, "Filter_tag": np.array([1])}, {"is_lod": False},
          {"Out": 0, "LossWeight": 0, "IndexMap": 0}), "tags for each of 3 instances, got 4"),
    (Case("hash", {"X": np.ones((2, 3))}, {}, {"Out": 0}), "expected whole numbers, got float64")])
def test_what_does_not_fit_is_refused(case, text):
    with pytest.raises(ProgramError, match=text):
        check_forward(case)
