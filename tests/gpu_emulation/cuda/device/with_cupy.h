// For kernels that cupy writes: the words of CUDA, then cupy's own headers, precompiled together (compiling.py).
#pragma once
#include "words.h"

// cupy brings a class of its own where CUDA's header is missing, and these functions are CUDA's.
struct half;
static inline unsigned short __half_as_ushort(const half &value);
static inline half __ushort_as_half(unsigned short bits);

#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
#include <cupy/float16.cuh>

static inline unsigned short __half_as_ushort(const half &value)
{
    unsigned short bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline half __ushort_as_half(unsigned short bits)
{
    return half(__half_raw{bits});
}
