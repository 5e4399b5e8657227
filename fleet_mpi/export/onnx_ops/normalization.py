"""Normalisation with statistics of the past, of each row or of groups of channels; softmax; dropout when testing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.program.ops.dropout import scale_of
from fleet_mpi.program.ops.normalization import channel_axis, statistics_are_given
from fleet_mpi.program.ops.softmax import class_axis

if TYPE_CHECKING:
    from fleet_mpi.export.onnx_graph import Step


def batch_norm(k: Step) -> None:
    """With the running statistics."""
    if not statistics_are_given(k):
        k.refuse("it takes the statistics of the batch; save_inference_model freezes it, or set use_global_stats")
    rank, axis = len(k.shape("X")), channel_axis(k)
    order = [0, axis, *(i for i in range(1, rank) if i != axis)]
    x = k["X"] if axis == 1 else k.node("Transpose", k["X"], perm=order)
    vectors = [k.reshape(k[slot], [-1]) if len(k.shape(slot)) != 1 else k[slot]
               for slot in ("Scale", "Bias", "Mean", "Variance")]
    made = k.node("BatchNormalization", x, *vectors, epsilon=float(k.attr("epsilon")))
    k.put("Y", made if axis == 1 else k.node("Transpose", made, perm=[order.index(i) for i in range(rank)]))


def layer_norm(k: Step) -> None:
    """Over all dimensions from ``begin_norm_axis`` on."""
    begin = k.attr("begin_norm_axis")
    sizes = k.shape("X")[begin:]
    if -1 in sizes:
        k.refuse(f"rows of unknown size {list(sizes)}")
    scale = k.reshape(k["Scale"], sizes) if k.has("Scale") else k.node("Expand", k.constant(1, k.dtype("X")),
                                                                       k.constant(sizes))
    bias = [k.reshape(k["Bias"], sizes)] if k.has("Bias") else []
    k.put("Y", k.node("LayerNormalization", k["X"], scale, *bias, axis=begin, epsilon=float(k.attr("epsilon"))))


def group_norm(k: Step) -> None:
    """Groups are channels of an instance norm; scale and bias, one number per channel, follow."""
    if channel_axis(k) != 1:
        k.refuse("channels behind the data")
    groups = k.attr("groups", 0) or k.shape("X")[1]   # instance_norm: every channel is a group
    if groups < 0:
        k.refuse("an unknown number of channels")
    ones, zeros = k.constant([1] * groups, k.dtype("X")), k.constant([0] * groups, k.dtype("X"))
    rows = k.node("Reshape", k["X"], k.constant([0, groups, -1]))
    rows = k.node("InstanceNormalization", rows, ones, zeros, epsilon=float(k.attr("epsilon")))
    made = k.node("Reshape", rows, k.node("Shape", k["X"]))
    for slot, type in (("Scale", "Mul"), ("Bias", "Add")):
        if k.has(slot):
            made = k.node(type, made, k.reshape(k[slot], [-1] + [1] * (len(k.shape("X")) - 2)))
    k.put("Y", made)


def softmax(k: Step) -> None:
    """Softmax over one dimension, or its logarithm."""
    type = {"softmax": "Softmax", "log_softmax": "LogSoftmax"}[k.op.type]
    k.put("Out", k.node(type, k["X"], axis=class_axis(k, "X")))


def dropout(k: Step) -> None:
    """When testing only a scaling."""
    if not k.attr("is_test"):
        k.refuse("it drops elements, as in training; save_inference_model freezes it")
    scale = scale_of(k) if k.op.type == "dropout" else 1.0
    k.put("Out", k["X"] if scale == 1.0 else k.node("Mul", k["X"], k.constant(scale, k.dtype("X"))))


CONVERTERS = {"batch_norm": batch_norm, "layer_norm": layer_norm, "group_norm": group_norm,
              "instance_norm": group_norm, "softmax": softmax, "log_softmax": softmax, "dropout": dropout,
              "alpha_dropout": dropout}
