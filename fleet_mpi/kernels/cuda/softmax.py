"""Softmax and the cross entropy of logits for cupy's arrays: a block for each row, everything in one launch.

The logarithm of softmax and soft labels run on a device as their references do.
"""

import numpy as np

from fleet_mpi.kernels.cuda.compiling import bound, fits
from fleet_mpi.kernels.cuda.summing import SUM_OF_THREADS, threads_for
from fleet_mpi.kernels.reference import softmax as reference

# A block's row is one line of classes of [outer, classes, inner]. Outputs may lie in the memory of inputs: a thread
# writes an element only after it has read it, and the label's is read before any is written.
SOURCE = SUM_OF_THREADS + r"""
#define LOWEST real(-64)
#define FOR_MY_CLASSES(i, inner, classes) \
    const long long row = (long long)(blockIdx.x / (inner)) * (classes) * (inner) + blockIdx.x % (inner); \
    for (long long i = row + (long long)threadIdx.x * (inner); i < row + (long long)(classes) * (inner); \
         i += (long long)blockDim.x * (inner))

// A NaN wins, as in numpy.
__device__ inline real larger(real one, real other) { return one > other || one != one ? one : other; }

__device__ inline real largest_of_threads(real mine)
{
    __shared__ real parts[512];
    parts[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half)
            parts[threadIdx.x] = larger(parts[threadIdx.x], parts[threadIdx.x + half]);
        __syncthreads();
    }
    const real found = parts[0];
    __syncthreads();
    return found;
}

__device__ inline real largest_of_row(const real *x, unsigned classes, unsigned inner)
{
    real mine = x[(long long)(blockIdx.x / inner) * classes * inner + blockIdx.x % inner];   // the row's first
    FOR_MY_CLASSES(i, inner, classes)
        mine = larger(x[i], mine);
    return largest_of_threads(mine);
}

__device__ inline real power_of(real shifted) { return exp(shifted < LOWEST ? LOWEST : shifted); }

// Writes the powers, divided by their sum.
__device__ inline void write_softmax(const real *x, real *out, real top, unsigned classes, unsigned inner)
{
    real sum = 0;
    {
        FOR_MY_CLASSES(i, inner, classes) {
            out[i] = power_of(x[i] - top);
            sum += out[i];
        }
    }
    sum = sum_of_threads(sum);
    FOR_MY_CLASSES(i, inner, classes)
        out[i] /= sum;
}

extern "C" __global__ void softmax(const real *x, real *out, unsigned classes, unsigned inner)
{
    write_softmax(x, out, largest_of_row(x, classes, inner), classes, inner);
}

extern "C" __global__ void softmax_backward(const real *out, const real *dout, real *dx, unsigned classes,
                                            unsigned inner)
{
    real along = 0;
    {
        FOR_MY_CLASSES(i, inner, classes)
            along += dout[i] * out[i];
    }
    along = sum_of_threads(along);
    FOR_MY_CLASSES(i, inner, classes)
        dx[i] = (dout[i] - along) * out[i];
}

extern "C" __global__ void softmax_cross_entropy(const real *logits, const long long *labels, real *probabilities,
                                                 real *loss, long long ignored, unsigned classes, unsigned inner)
{
    const long long label = labels[blockIdx.x], most = classes - 1;
    const long long wanted = label < 0 ? 0 : label > most ? most : label;
    const long long start = (long long)(blockIdx.x / inner) * classes * inner + blockIdx.x % inner;
    const real chosen = logits[start + wanted * inner], top = largest_of_row(logits, classes, inner);
    real sum = 0;
    {
        FOR_MY_CLASSES(i, inner, classes)
            sum += exp(logits[i] - top);
    }
    sum = sum_of_threads(sum);
    write_softmax(logits, probabilities, top, classes, inner);
    if (threadIdx.x == 0)
        loss[blockIdx.x] = label == ignored ? real(0) : log(sum) - (chosen - top < LOWEST ? LOWEST : chosen - top);
}

extern "C" __global__ void softmax_cross_entropy_backward(const real *probabilities, const long long *labels,
                                                          const real *dloss, real *dlogits, long long ignored,
                                                          unsigned classes, unsigned inner)
{
    const long long label = labels[blockIdx.x];
    const real share = label == ignored ? real(0) : dloss[blockIdx.x];
    FOR_MY_CLASSES(i, inner, classes)
        dlogits[i] = (probabilities[i] - ((i - row) / inner == label ? real(1) : real(0))) * share;
}
"""


def softmax(x, out):
    """Three passes over a row by the same block."""
    if _usable(x, out):
        _run("softmax", x, out)
    else:
        reference.softmax.reference(x, out)


def softmax_backward(out, dout, dx):
    """One sum for each row."""
    if _usable(out, dout, dx):
        _run("softmax_backward", out, dout, dx)
    else:
        reference.softmax_backward.reference(out, dout, dx)


def softmax_cross_entropy(logits, labels, probabilities, loss, ignore_index):
    """Probabilities and loss by the same block."""
    if not _usable(logits, probabilities, loss, labels=labels):
        return reference.softmax_cross_entropy.reference(logits, labels, probabilities, loss, ignore_index)
    _run("softmax_cross_entropy", logits, labels, probabilities, loss, np.int64(ignore_index))
    return -1


def softmax_cross_entropy_backward(probabilities, labels, dloss, dlogits, ignore_index):
    """Element by element."""
    if _usable(probabilities, dloss, dlogits, labels=labels):
        _run("softmax_cross_entropy_backward", probabilities, labels, dloss, dlogits, np.int64(ignore_index))
    else:
        reference.softmax_cross_entropy_backward.reference(probabilities, labels, dloss, dlogits, ignore_index)


def _usable(first, *others, labels=None):
    return (fits(first, *others) and first.size > 0
            and (labels is None or labels.dtype == np.int64 and labels.flags.c_contiguous))


def _run(name, first, *arguments):
    """Launch a function of the source over [rows, classes] or [outer, classes, inner]."""
    classes, inner = first.shape[1], first.shape[2] if first.ndim == 3 else 1
    bound(SOURCE, name, first.size // classes, first, *arguments, np.uint32(classes), np.uint32(inner),
          threads=threads_for(classes))()
