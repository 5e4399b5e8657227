"""Normalisation by the statistics of a batch, of the past, or of each row."""

from fleet_mpi.kernels.reference import normalization as kernels
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.widening import in_float32

ATTRS = {"momentum": 0.9, "epsilon": 1e-5, "is_test": False, "use_global_stats": False, "trainable_statistics": False,
         "data_layout": "NCHW"}
INPUTS, OUTPUTS = "X Scale Bias Mean Variance", "Y MeanOut VarianceOut SavedMean SavedVariance"
# Not in place, though the kernels could: loops whose arrays may overlap are not vectorised, and the
# gradient behind a relu takes six times as long (2.1 against 12.6 ms for [8, 64, 56, 56]).


def channel_axis(k, slot="X"):
    """The dimension of the channels: the last with NHWC or [N, C], else the second."""
    layout, rank = k.attr("data_layout", "NCHW"), len(k.shape(slot))
    if layout not in ("NCHW", "NHWC", "NCDHW", "NDHWC", "AnyLayout", "NCL", "NLC", "NC"):
        k.fail(f"data_layout: expected NCHW or NHWC, got {layout!r}")
    return rank - 1 if rank == 2 or layout in ("NHWC", "NDHWC", "NLC") else 1


def statistics_are_given(k):
    """Whether the running statistics are used, not those of the batch."""
    return bool(k.attr("use_global_stats") or k.attr("is_test") and not k.attr("trainable_statistics"))


def infer_batch_norm(k):
    """Y as X; all else one number per channel."""
    if len(k.shape("X")) < 2:
        k.fail(f"expected X with a batch and a channel dimension, got {list(k.shape('X'))}")
    channels = k.shape("X")[channel_axis(k)]
    for slot in INPUTS.split()[1:]:
        if -1 not in (channels, *k.shape(slot)) and k.meta(slot).size != channels:
            k.fail(f"X {list(k.shape('X'))} has {channels} channels, but {slot} has shape {list(k.shape(slot))}")
    k.set("Y", k.shape("X"))
    for slot, source in zip(OUTPUTS.split()[1:], ("Mean", "Variance", "Mean", "Variance")):
        k.set(slot, k.shape(source), k.dtype(source), lod=())


def run_batch_norm(k, relu=False):
    """One kernel. SavedVariance holds 1 / sqrt(variance + epsilon), as in the original."""
    x, y, axis = k["X"], k["Y"], channel_axis(k)
    scale, bias, mean, variance = (k[slot] for slot in INPUTS.split()[1:])
    mean_out, variance_out, saved_mean, saved_inverse = (k[slot] for slot in OUTPUTS.split()[1:])
    xp, epsilon = k.xp, k.attr("epsilon")
    copies = [(old, new) for old, new in ((mean, mean_out), (variance, variance_out))
              if new is not None and new is not old]
    saved_mean = k.scratch(mean.shape, mean.dtype) if saved_mean is None else saved_mean
    saved_inverse = k.scratch(mean.shape, mean.dtype) if saved_inverse is None else saved_inverse
    if statistics_are_given(k):
        copies.append((mean, saved_mean))
        main = kernels.batch_norm_inference(x, scale, bias, mean, variance, y, saved_inverse, epsilon, relu, axis)
    else:
        main = kernels.batch_norm_forward(x, scale, bias, y, saved_mean, saved_inverse, mean_out, variance_out,
                                          k.attr("momentum"), epsilon, relu, axis)
    if not copies:
        return main

    def run():
        for old, new in copies:
            xp.copyto(new, old)
        main()
    return run


def run_batch_norm_gradients(k, out=None):
    """One kernel; it reads what the forward op saved, never the running statistics. ``out``: a fused relu's."""
    x, dy, scale = k["X"], k["Y@GRAD"], k["Scale"]
    dx, dscale, dbias = k["X@GRAD"], k["Scale@GRAD"], k["Bias@GRAD"]
    dx = k.scratch(x.shape, x.dtype) if dx is None else dx
    dscale = k.scratch(scale.shape, scale.dtype) if dscale is None else dscale
    dbias = k.scratch(scale.shape, scale.dtype) if dbias is None else dbias
    return kernels.batch_norm_backward(x, dy, out, scale, k["SavedMean"], k["SavedVariance"], dx, dscale, dbias,
                                       statistics_are_given(k), channel_axis(k))


@op("batch_norm", INPUTS, OUTPUTS, attrs=ATTRS, grad_reads="X Scale SavedMean SavedVariance", half_slots="X Y")
class BatchNorm:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias for each channel; the running statistics follow.

    MeanOut and VarianceOut are the variables of Mean and Variance again.
    """

    infer, run, grad = infer_batch_norm, in_float32(run_batch_norm), in_float32(run_batch_norm_gradients)


@op("fused_batch_norm_act", INPUTS, OUTPUTS, attrs={**ATTRS, "act_type": "relu"},
    grad_reads="X Y Scale SavedMean SavedVariance")
class FusedBatchNormAct:
    """Batch norm and relu in one pass; made by ``fusion`` when a plan is made."""

    infer = infer_batch_norm

    @in_float32
    def run(k):
        return run_batch_norm(k, relu=True)

    @in_float32
    def grad(k):
        """The kernel, which masks by the output."""
        return run_batch_norm_gradients(k, k["Y"])


def rows_before(k, slot="X"):
    """How many rows there are to normalise, -1 if unknown; and how long each is."""
    shape, begin = k.shape(slot), k.attr("begin_norm_axis")
    if not 0 < begin < len(shape):
        k.fail(f"begin_norm_axis {begin}: expected 1 .. {len(shape) - 1} for the shape {list(shape)}")
    rows = -1 if -1 in shape[:begin] else kernels.row_view_shape(shape, begin)[0]
    return rows, kernels.row_view_shape(shape, begin)[1]


@op("layer_norm", "X Scale? Bias?", "Y Mean Variance", attrs={"begin_norm_axis": 1, "epsilon": 1e-5},
    grad_reads="X Scale Mean Variance", half_slots="X Y")
class LayerNorm:
    """Every row (all dimensions from ``begin_norm_axis`` on) brought to mean 0 and variance 1, then scaled.

    Variance holds 1 / sqrt(variance + epsilon), which is what the gradient needs.
    """

    def infer(k):
        """Y as X; a mean and a variance per row."""
        rows, columns = rows_before(k)
        for slot in ("Scale", "Bias"):
            if k.has(slot) and -1 not in k.shape("X")[k.attr("begin_norm_axis"):] and k.meta(slot).size != columns:
                k.fail(f"expected {slot} of {columns} numbers for X {list(k.shape('X'))}, got {list(k.shape(slot))}")
        k.set("Y", k.shape("X"))
        dtype = "float32" if k.dtype("X") == "float16" else k.dtype("X")
        k.set("Mean", [rows], dtype, lod=())
        k.set("Variance", [rows], dtype, lod=())

    @in_float32
    def run(k):
        return kernels.layer_norm_forward(k["X"], k["Scale"], k["Bias"], k["Y"], k["Mean"], k["Variance"],
                                          k.attr("epsilon"), k.attr("begin_norm_axis"))

    @in_float32
    def grad(k):
        x, dx = k["X"], k["X@GRAD"]
        dx = k.scratch(x.shape, x.dtype) if dx is None else dx
        return kernels.layer_norm_backward(x, k["Y@GRAD"], k["Scale"], k["Mean"], k["Variance"], dx,
                                           k["Scale@GRAD"], k["Bias@GRAD"], k.attr("begin_norm_axis"))
