"""CUDA C for kernels: what all sources begin with, and how they are compiled and launched.

A source is text, compiled by NVRTC on first use, once for every type of number and device. Products and sums are not
contracted to fused ones, numbers below the smallest normal one stay, divisions and roots are the exact ones: so a
kernel gives the bits of its reference. cupy's own way to compile (``RawModule``) would append ``-ftz=true``, which
makes zeros of such small numbers; therefore NVRTC is called here.

Only these kernels promise bits. All else that runs on a device is cupy's, compiled with that option and with cupy's
order of sums: equal to the host's to rounding. No GPU was at hand: tests compile the sources to PTX, and run the same
text on the CPU thread by thread.
"""

import functools

import numpy as np

from fleet_mpi.arrays import module_of
from fleet_mpi.errors import EnvironmentProblem

OPTIONS = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
THREADS = 256        # of a block
MOST_BLOCKS = 4096   # enough to fill any device; threads take further elements in strides

FLOATS = ("float16", "float32", "float64")

# ``stored`` is how a number lies in memory, ``real`` what is computed with. Halves are converted by their bits: NVRTC
# has no header for them without the toolkit.
_TYPES = {
    "float32": "typedef float stored;\ntypedef float real;\n",
    "float64": "typedef double stored;\ntypedef double real;\n",
    "float16": "#define HALVES\ntypedef unsigned short stored;\ntypedef float real;\n",
    "int32": "typedef int stored;\ntypedef int real;\n",
    "int64": "typedef long long stored;\ntypedef long long real;\n",
}

_PREAMBLE = r"""
#ifdef HALVES
__device__ inline real widen(stored bits)
{
    const unsigned sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
    if (exponent == 31u)   // infinite, or no number
        return __uint_as_float(sign | 0x7f800000u | fraction << 13);
    if (exponent)
        return __uint_as_float(sign | (exponent + 112u) << 23 | fraction << 13);
    const real size = fraction * 5.9604644775390625e-8f;   // 2^-24, the smallest half
    return sign ? -size : size;
}

// To the nearest, of two as near the even one.
__device__ inline stored narrow(real x)
{
    const unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u)
        return sign | 0x7e00u;
    if (size >= 0x477ff000u)   // 65520: nearer to 65536, which is infinite, than to the largest half
        return sign | 0x7c00u;
    if (size < 0x38800000u)    // below 2^-14 the steps are those of a sum with 0.5
        return sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000u);
    return sign | (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
}
#else
__device__ inline real widen(stored x) { return x; }
__device__ inline stored narrow(real x) { return x; }
#endif

// A thread's elements of so many: its own number, and on in strides.
#define FOR_MY_ELEMENTS(i, size) \
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (size); \
         i += (long long)gridDim.x * blockDim.x)
"""


def complete(text, dtype):
    """A source for one type of number, ready to be compiled."""
    return _TYPES[np.dtype(dtype).name] + _PREAMBLE + text


def fits(*lines, dtypes=("float32", "float64")):
    """Whether a source can work on these arrays: contiguous, and of one of these types, the same for all."""
    return lines[0].dtype.name in dtypes and all(
        line.dtype == lines[0].dtype and line.flags.c_contiguous for line in lines)


def launch(text, name, size, first, *arguments):
    """Run function ``name`` of a source over ``size`` elements; the type is that of the ``first`` argument, an array.

    ``size`` is handed over as the last argument. Returns at once: the device computes in its stream's order.
    """
    if size:
        bound(text, name, blocks_for(size), first, *arguments, np.int64(size))()


def bound(text, name, blocks, first, *arguments, threads=THREADS):
    """The call that runs function ``name`` of a source in so many blocks, bound once to its arguments.

    As ``launch``, for calls that are made at every step: nothing is looked up again. No size is added.
    """
    return functools.partial(function(text, name, first), (blocks,), (threads,), (first, *arguments))


def function(text, name, like):
    """Function ``name`` of a source for arrays ``like`` this one, to be called as ``cupy.RawKernel`` is."""
    xp = module_of(like)
    return _function(xp, xp.cuda.runtime.getDevice(), text, name, like.dtype.name)


def or_null(array):
    """An argument that may be absent: the array, or a null pointer."""
    return np.uint64(0) if array is None else array


def blocks_for(size):
    """How many blocks take ``size`` elements, in strides where they are many."""
    return min(MOST_BLOCKS, -(-size // THREADS))


@functools.cache
def _function(xp, device, text, name, dtype):
    return _module(xp, device, text, dtype).get_function(name)


@functools.cache
def _module(xp, device, text, dtype):
    """A source's functions, loaded for one device: the current one."""
    made = xp.cuda.Module()
    made.load(_compiled(xp.cuda.nvrtc, complete(text, dtype), int(xp.cuda.Device(device).compute_capability)))
    return made


def _compiled(nvrtc, source, capability):
    """What a device of this capability runs: its machine code or, if NVRTC is older than the device, PTX."""
    known = nvrtc.getSupportedArchs()
    if capability in known:
        kind, take = f"sm_{capability}", nvrtc.getCUBIN
    else:
        kind, take = f"compute_{max(one for one in known if one < capability)}", nvrtc.getPTX
    program = nvrtc.createProgram(source, "fleet_mpi.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"--gpu-architecture={kind}"))
        return take(program)
    except nvrtc.NVRTCError as error:
        raise EnvironmentProblem(f"NVRTC {nvrtc.getVersion()} cannot compile a kernel for {kind}: expected CUDA 12 or "
                                 f"newer, got {nvrtc.getProgramLog(program)}") from error
    finally:
        nvrtc.destroyProgram(program)
