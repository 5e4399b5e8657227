"""Ops of program/ops/normalization.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def by_channel(inputs, attrs):
    x, epsilon, momentum = inputs["X"], attrs.get("epsilon", 1e-5), attrs.get("momentum", 0.9)
    axis = x.ndim - 1 if attrs.get("data_layout") == "NHWC" or x.ndim == 2 else 1
    others = tuple(i for i in range(x.ndim) if i != axis)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    given = attrs.get("is_test") or attrs.get("use_global_stats")
    mean = inputs["Mean"] if given else x.mean(others)
    variance = inputs["Variance"] if given else x.var(others)
    inverse = 1 / np.sqrt(variance + epsilon)
    y = (x - mean.reshape(shape)) * (inverse * inputs["Scale"]).reshape(shape) + inputs["Bias"].reshape(shape)
    if attrs.get("act_type"):
        y = np.maximum(y, 0)
    kept = 1.0 if given else momentum
    return {"Y": y, "MeanOut": kept * inputs["Mean"] + (1 - kept) * mean,
            "VarianceOut": kept * inputs["Variance"] + (1 - kept) * variance, "SavedMean": mean,
            "SavedVariance": inverse}


def by_row(inputs, attrs):
    x, begin, epsilon = inputs["X"], attrs.get("begin_norm_axis", 1), attrs.get("epsilon", 1e-5)
    rows = x.reshape(int(np.prod(x.shape[:begin])), -1)
    inverse = 1 / np.sqrt(rows.var(1) + epsilon)
    made = (rows - rows.mean(1, keepdims=True)) * inverse[:, None]
    made = made * inputs.get("Scale", 1.0) + inputs.get("Bias", 0.0)
    return {"Y": made.reshape(x.shape), "Mean": rows.mean(1), "Variance": inverse}


def batch_case(type, shape, **attrs):
    channels = shape[-1] if attrs.get("data_layout") == "NHWC" or len(shape) == 2 else shape[1]
    inputs = {"X": rng.normal(1, 2, shape), "Scale": rng.uniform(0.5, 2, channels), "Bias": rng.normal(size=channels),
              "Mean": rng.normal(size=channels), "Variance": rng.uniform(0.5, 2, channels)}
    return Case(type, inputs, attrs, by_channel, "X Scale Bias", "Y", note=f"{shape}{attrs}")


def row_case(shape, scale=True, bias=True, **attrs):
    columns = int(np.prod(shape[attrs.get("begin_norm_axis", 1):]))
    inputs = {"X": rng.normal(1, 2, shape)}
    inputs.update({"Scale": rng.uniform(0.5, 2, columns)} if scale else {})
    inputs.update({"Bias": rng.normal(size=columns)} if bias else {})
    return Case("layer_norm", inputs, attrs, by_row, " ".join(inputs), "Y", note=f"{shape}{attrs}")


CASES = [batch_case("batch_norm", shape, **attrs) for shape, attrs in [
    ((3, 2, 2, 2), {}), ((4, 3), {}), ((2, 3, 2, 2), {"data_layout": "NHWC", "momentum": 0.5}),
    ((2, 2, 2, 2, 2), {"epsilon": 0.1}), ((3, 2, 2), {}), ((2, 2, 3, 1), {"is_test": True}),
    ((3, 2, 2, 1), {"use_global_stats": True}), ((3, 2), {"use_global_stats": True, "data_layout": "NHWC"}),
]]
CASES += [batch_case("fused_batch_norm_act", shape, act_type="relu", **attrs) for shape, attrs in [
    ((3, 2, 2, 2), {}), ((4, 3), {}), ((2, 2, 2, 3), {"data_layout": "NHWC"}), ((3, 2, 2, 1), {"is_test": True})]]
CASES += [row_case((3, 4)), row_case((2, 3, 2)), row_case((2, 3, 2), begin_norm_axis=2, epsilon=0.01),
          row_case((2, 4), scale=False), row_case((2, 4), bias=False), row_case((3, 4), scale=False, bias=False)]

test_forward, test_gradient, test_device = checks(CASES, widen=(True, False))


def test_the_gradient_reads_no_running_statistics():
    built = Built(CASES[0], with_grad=True)
    made = next(op for op in built.program.global_block().ops if op.type == "batch_norm_grad")
    assert not {"Mean_0", "Variance_0", "MeanOut_out_0", "VarianceOut_out_0"} & set(made.input_arg_names)


@pytest.mark.parametrize("type, change, attrs, words", [
    ("batch_norm", {"Scale": np.ones(3)}, {}, "2 channels, but Scale"),
    ("batch_norm", {}, {"data_layout": "CHW"}, "NCHW or NHWC"),
    ("batch_norm", {"X": np.ones(2)}, {}, "channel dimension"),
    ("layer_norm", {"Scale": np.ones(3)}, {}, "Scale of 8 numbers"),
    ("layer_norm", {}, {"begin_norm_axis": 4}, r"1 \.\. 3"),
])
def test_what_does_not_fit_is_refused_when_the_program_is_built(type, change, attrs, words):
    inputs = {"X": np.ones((3, 2, 2, 2)), "Scale": np.ones(2), "Bias": np.ones(2)}
    outputs = {"Y": [0], "Mean": [0], "Variance": [0]}
    if type == "batch_norm":
        inputs.update(Mean=np.ones(2), Variance=np.ones(2))
        outputs = dict.fromkeys(["Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"], [0])
    with pytest.raises(ProgramError, match=words):
        Built(Case(type, {**inputs, **change}, attrs, None, outputs=outputs))
