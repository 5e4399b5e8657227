"""Every converter against the Cases of its op: a runtime makes of the ONNX model what numpy makes of the inputs."""

import re

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install '.[export]'")

from fleet_mpi.checkpoint.formats import Value
from fleet_mpi.errors import UsageError
from fleet_mpi.export.onnx_model import onnx_model
from fleet_mpi.export.onnx_ops import CONVERTERS
from fleet_mpi.export.saved_model import SavedModel
from tests.unit.export.onnx_running import RUNNERS, by_reference, checked
from tests.unit.program.ops.checking import Built
from tests.unit.program.ops.test_every_op import cases

CASES = {}
for _case in cases():
    if _case.type in CONVERTERS:
        CASES.setdefault(_case.type, []).append(_case)

# Outputs for the gradient, or of training.
NOT_EXPORTED = {"XShape", "Mask", "MaxIndex", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance", "Mean",
                "Variance"}
# The inputs whose first size a program may leave open.
OPEN = {"X", "Y", "Input", "Ids", "Index", "Condition", "target_tensor"}
# How an op is refused that has a converter: what ONNX has no counterpart for.
A_VARIABLE = "that (is a|are) variables?"
REFUSED = {
    "alpha_dropout": "as in training", "dropout": "as in training", "batch_norm": "statistics of the batch",
    "concat": A_VARIABLE, "gather": A_VARIABLE, "one_hot": A_VARIABLE, "one_hot_v2": A_VARIABLE, "pad2d": A_VARIABLE,
    "split": f"{A_VARIABLE}|of an unknown size", "unsqueeze": A_VARIABLE, "unsqueeze2": A_VARIABLE, "tile": A_VARIABLE,
    "fill_constant_batch_size_like": "the number of an input's sequences", "group_norm": "channels behind the data",
    "squeeze": "name the axes", "squeeze2": "name the axes", "pool2d": "do not divide evenly",
    "pool3d": "do not divide evenly", "p_norm": "porder 0", "sequence_pool": "sequences of 2 levels",
}
# What onnx's own evaluator (1.23) fails at with an error of its own; onnxruntime computes it.
FAILS_BY_REFERENCE = ("pool3d", "conv2d_transpose", "conv3d_transpose")


class Narrow(Built):
    """A Case in float32."""

    is_open = False

    def _input(self, block, slot, i, given, widen):
        array, *rest = given if isinstance(given, tuple) else (given,)
        array = np.asarray(array)
        array = array.astype("float32") if array.dtype == "float64" else array
        name = super()._input(block, slot, i, (array, *rest) if rest else array, False)
        if self.is_open and slot in OPEN and array.ndim and not block.var(name).persistable:
            block.var(name).shape = (-1, *array.shape[1:])
        return name


class Open(Narrow):
    """The same with unknown first sizes."""

    is_open = True


def exported(built):
    """(model, {(slot, place): name} of its outputs)."""
    block = built.program.global_block()
    wanted = {(slot, i): name for slot, names in built.outputs.items() for i, name in enumerate(names)
              if slot not in NOT_EXPORTED and slot in built.case.expected()}
    values = [Value(name, built.scope.find_var(name).tensor.array) for name in block.vars
              if block.vars[name].persistable]
    saved = SavedModel("case", values, built.program, tuple(built.feed), tuple(wanted.values()))
    return checked(onnx_model(saved)), wanted


def fed(built, model):
    """What the model is fed: arrays, and the offsets of sequences."""
    feed = {}
    for name, value in built.feed.items():
        feed[name] = np.asarray(value)
        if hasattr(value, "lod") and value.lod():
            feed[name + ".lod"] = np.array(value.lod()[-1], "int64")
    return {one.name: feed[one.name] for one in model.graph.input}


def compare(built, runner):
    """Whether it could be exported; then the outputs are those of the Case."""
    try:
        model, wanted = exported(built)
    except UsageError as refused:
        assert re.search(REFUSED[built.case.type], str(refused)), refused
        return False
    expected = built.case.expected()
    for (slot, i), got in zip(wanted, runner(model, fed(built, model))):
        want = np.asarray(expected[slot][i])
        assert got.shape == want.shape, f"{built.case!r} {slot}[{i}]"
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5, err_msg=f"{built.case!r} {slot}[{i}]")
    return True


@pytest.mark.parametrize("type", CASES)
@pytest.mark.parametrize("kind", (Narrow, Open))
def test_the_cases_of_an_op_give_the_same(type, kind):
    if RUNNERS[0] is by_reference and type in FAILS_BY_REFERENCE:
        pytest.skip("onnx's own evaluator fails at this op: pip install onnxruntime")
    assert any([compare(kind(case), RUNNERS[0]) for case in CASES[type]])


@pytest.mark.parametrize("type", sorted(set(CASES) - set(FAILS_BY_REFERENCE)))
def test_the_evaluator_of_onnx_agrees(type):
    """The first Case that can be exported."""
    assert any(compare(Narrow(case), by_reference) for case in CASES[type])


def test_every_converter_has_a_case():
    assert set(CONVERTERS) == set(CASES)
