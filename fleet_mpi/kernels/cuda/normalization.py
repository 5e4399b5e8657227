"""Batch norm for cupy's arrays: one block for each channel, everything in one launch.

Every sum is added up in an order that follows from the shape: threads take elements in strides, then a tree over the
threads. Layer norm runs on a device as its reference does.

Data may be halves; statistics, weights and all arithmetic then are float32.
"""

import numpy as np

from fleet_mpi.kernels.cuda.compiling import FLOATS, blocks_for, bound, fits, or_null
from fleet_mpi.kernels.cuda.summing import SUM_OF_THREADS, threads_for
from fleet_mpi.kernels.reference import normalization
from fleet_mpi.kernels.reference.normalization import channel_view_shape, check_channels
from fleet_mpi.kernels.widening import wide_type

SOURCE = SUM_OF_THREADS + r"""
// Where element j of a channel lies, of an array [outer, channels, inner].
struct Shape {
    unsigned outer, channels, inner;
    __device__ unsigned count() const { return outer * inner; }
    __device__ long long at(unsigned j) const
    {
        return ((long long)(j / inner) * channels + blockIdx.x) * inner + j % inner;
    }
};

__device__ inline real clipped(real value, int relu) { return relu && value < 0 ? real(0) : value; }

extern "C" __global__ void batch_norm_forward(
    const stored *x, const real *scale, const real *bias, stored *out, real *mean, real *inv_std, real *running_mean,
    real *running_var, real momentum, real rest, real epsilon, int relu, unsigned outer, unsigned channels,
    unsigned inner)
{
    const Shape shape = {outer, channels, inner};
    const unsigned count = shape.count(), c = blockIdx.x;
    real sum = 0;
    for (unsigned j = threadIdx.x; j < count; j += blockDim.x)
        sum += widen(x[shape.at(j)]);
    const real average = sum_of_threads(sum) / count;
    sum = 0;
    for (unsigned j = threadIdx.x; j < count; j += blockDim.x) {
        const real centred = widen(x[shape.at(j)]) - average;
        sum += centred * centred;
    }
    const real variance = sum_of_threads(sum) / count, inverse = real(1) / sqrt(variance + epsilon);
    const real factor = inverse * scale[c], shift = bias[c];
    for (unsigned j = threadIdx.x; j < count; j += blockDim.x) {
        const long long at = shape.at(j);
        out[at] = narrow(clipped((widen(x[at]) - average) * factor + shift, relu));
    }
    if (threadIdx.x == 0) {
        mean[c] = average;
        inv_std[c] = inverse;
        running_mean[c] = running_mean[c] * momentum + average * rest;
        running_var[c] = running_var[c] * momentum + variance * rest;
    }
}

extern "C" __global__ void batch_norm_inference(
    const stored *x, const real *scale, const real *bias, const real *mean, const real *variance, stored *out,
    real *inv_std, real epsilon, int relu, int channels, int inner, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        const int c = i / inner % channels;
        const real inverse = real(1) / sqrt(variance[c] + epsilon);
        out[i] = narrow(clipped((widen(x[i]) - mean[c]) * (inverse * scale[c]) + bias[c], relu));
        if (inv_std && i < (long long)channels * inner && i % inner == 0)
            inv_std[c] = inverse;
    }
}

extern "C" __global__ void batch_norm_backward(
    const stored *x, const stored *dout, const stored *out, const real *scale, const real *mean, const real *inv_std,
    stored *dx, real *dscale, real *dbias, int frozen, unsigned outer, unsigned channels, unsigned inner)
{
    const Shape shape = {outer, channels, inner};
    const unsigned count = shape.count(), c = blockIdx.x;
    const real average = mean[c], inverse = inv_std[c], factor = scale[c] * inverse;
    real sum = 0, along = 0;
    for (unsigned j = threadIdx.x; j < count; j += blockDim.x) {
        const long long at = shape.at(j);
        const real given = out && !(widen(out[at]) > 0) ? real(0) : widen(dout[at]);
        sum += given;
        along += given * ((widen(x[at]) - average) * inverse);
    }
    sum = sum_of_threads(sum);
    along = sum_of_threads(along);
    const real share = frozen ? real(0) : sum / count, slope = frozen ? real(0) : along / count;
    for (unsigned j = threadIdx.x; j < count; j += blockDim.x) {
        const long long at = shape.at(j);
        const real given = out && !(widen(out[at]) > 0) ? real(0) : widen(dout[at]);
        dx[at] = narrow((given - share - (widen(x[at]) - average) * inverse * slope) * factor);
    }
    if (threadIdx.x == 0) {
        dscale[c] = along;
        dbias[c] = sum;
    }
}
"""


def batch_norm_forward(x, scale, bias, out, mean, inv_std, running_mean, running_var, momentum, epsilon, relu, axis):
    """Bind one launch: three passes over a channel by the same block."""
    vectors = {"scale": scale, "bias": bias, "mean": mean, "inv_std": inv_std, "running_mean": running_mean,
               "running_var": running_var}
    if not _usable((x, out), vectors):
        return normalization.batch_norm_forward.reference(x, scale, bias, out, mean, inv_std, running_mean,
                                                          running_var, momentum, epsilon, relu, axis)
    shape, kind = channel_view_shape(x.shape, axis), scale.dtype.type
    check_channels("batch norm", shape[1], **vectors)
    return bound(SOURCE, "batch_norm_forward", shape[1], x, scale, bias, out, mean, inv_std, running_mean, running_var,
                 kind(momentum), kind(1 - momentum), kind(epsilon), np.int32(bool(relu)), *map(np.uint32, shape),
                 threads=threads_for(shape[0] * shape[2]))


def batch_norm_inference(x, scale, bias, mean, variance, out, inv_std, epsilon, relu, axis):
    """Bind one launch, element by element."""
    vectors = {"scale": scale, "bias": bias, "mean": mean, "variance": variance}
    if inv_std is not None:
        vectors["inv_std"] = inv_std
    if not _usable((x, out), vectors):
        return normalization.batch_norm_inference.reference(x, scale, bias, mean, variance, out, inv_std, epsilon,
                                                            relu, axis)
    (_, channels, inner), kind = channel_view_shape(x.shape, axis), scale.dtype.type
    check_channels("batch norm", channels, **vectors)
    return bound(SOURCE, "batch_norm_inference", blocks_for(x.size), x, scale, bias, mean, variance, out,
                 or_null(inv_std), kind(epsilon), np.int32(bool(relu)), np.int32(channels), np.int32(inner),
                 np.int64(x.size))


def batch_norm_backward(x, dout, out, scale, mean, inv_std, dx, dscale, dbias, frozen, axis):
    """Bind one launch: the two sums of a channel, then its gradients by the same block."""
    vectors = {"scale": scale, "mean": mean, "inv_std": inv_std, "dscale": dscale, "dbias": dbias}
    if not _usable((x, dout, dx) if out is None else (x, dout, dx, out), vectors):
        return normalization.batch_norm_backward.reference(x, dout, out, scale, mean, inv_std, dx, dscale, dbias,
                                                           frozen, axis)
    shape = channel_view_shape(x.shape, axis)
    check_channels("batch norm", shape[1], **vectors)
    return bound(SOURCE, "batch_norm_backward", shape[1], x, dout, or_null(out), scale, mean, inv_std, dx, dscale,
                 dbias, np.int32(bool(frozen)), *map(np.uint32, shape), threads=threads_for(shape[0] * shape[2]))


def _usable(data, vectors):
    """Whether the source can work on these; positions in a channel are counted in 32 bits."""
    x, computed = data[0], wide_type(data[0].dtype).name
    return fits(*data, dtypes=FLOATS) and fits(*vectors.values(), dtypes=(computed,)) and 0 < x.size < 1 << 31
