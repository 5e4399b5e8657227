// CUDA C for g++: gives the words of the language and its built-in functions a meaning on the host. Included before
// every kernel's text. Arithmetic is the host's: not contracted, subnormal numbers kept.
#pragma once

#include <cassert>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

#include "entry.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __shared__ static   // blocks run one after another; nvrtc.cpp rewrites what is declared extern
#define CUDART_VERSION 13000

// ---- where a thread is
#define threadIdx emulation::emulation_thread
#define blockIdx emulation::emulation_block
#define blockDim emulation::emulation_block_size
#define gridDim emulation::emulation_grid_size
static const int warpSize = 32;

// ---- vectors
#define EMULATION_VECTORS(type, name, bytes)                                                                           \
    struct alignas(2 * bytes) name##2 { type x, y; };                                                                  \
    struct name##3 { type x, y, z; };                                                                                  \
    struct alignas(bytes < 8 ? 4 * bytes : 16) name##4 { type x, y, z, w; };                                           \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }                                            \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                 \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
EMULATION_VECTORS(float, float, 4)
EMULATION_VECTORS(double, double, 8)
EMULATION_VECTORS(int, int, 4)
EMULATION_VECTORS(unsigned, uint, 4)
EMULATION_VECTORS(long long, longlong, 8)
#undef EMULATION_VECTORS

// ---- bits
template <class To, class From> static inline To emulation_bits(From value)
{
    To bits;
    static_assert(sizeof bits == sizeof value, "the same bits");
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float __uint_as_float(unsigned b) { return emulation_bits<float>(b); }
static inline unsigned __float_as_uint(float x) { return emulation_bits<unsigned>(x); }
static inline float __int_as_float(int b) { return emulation_bits<float>(b); }
static inline int __float_as_int(float x) { return emulation_bits<int>(x); }
static inline long long __double_as_longlong(double x) { return emulation_bits<long long>(x); }
static inline double __longlong_as_double(long long b) { return emulation_bits<double>(b); }
static inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
static inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
static inline double __hiloint2double(int high, int low)
{
    return __longlong_as_double((long long)high << 32 | (unsigned)low);
}
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    const unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned chosen = 0;
    for (int i = 0; i < 4; i++)
        chosen |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 255u) << 8 * i;
    return chosen;
}

// ---- halves, as cupy's own class takes them: by their bits
static inline float __half2float(unsigned short bits) { return emulation_bits<_Float16>(bits); }
static inline unsigned short __float2half_rn(float x) { return emulation_bits<unsigned short>((_Float16)x); }

// ---- arithmetic. CUDA has its functions in the global namespace for float and double alike.
using std::abs; using std::acos; using std::acosh; using std::asin; using std::asinh; using std::atan;
using std::atan2; using std::atanh; using std::cbrt; using std::ceil; using std::copysign; using std::cos;
using std::cosh; using std::erf; using std::erfc; using std::exp; using std::exp2; using std::expm1; using std::fabs;
using std::floor; using std::fma; using std::fmax; using std::fmin; using std::fmod; using std::frexp;
using std::hypot; using std::ilogb; using std::isfinite; using std::isinf; using std::isnan; using std::ldexp;
using std::lgamma; using std::llrint; using std::llround; using std::log; using std::log10; using std::log1p;
using std::log2; using std::logb; using std::lround; using std::modf; using std::nearbyint; using std::nextafter;
using std::pow; using std::remainder; using std::rint; using std::round; using std::scalbn; using std::signbit;
using std::sin; using std::sinh; using std::sqrt; using std::tan; using std::tanh; using std::tgamma;
using std::trunc;

// Of mixed integers the wider, as CUDA's overloads have it; of floating-point numbers NaN is passed over.
template <class A, class B> using emulation_common =
    std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value, std::common_type_t<A, B>>;
template <class A, class B> static inline emulation_common<A, B> min(A a, B b)
{
    typedef emulation_common<A, B> T;
    if constexpr (std::is_floating_point<T>::value)
        return std::fmin((T)a, (T)b);
    else
        return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B> static inline emulation_common<A, B> max(A a, B b)
{
    typedef emulation_common<A, B> T;
    if constexpr (std::is_floating_point<T>::value)
        return std::fmax((T)a, (T)b);
    else
        return (T)a < (T)b ? (T)b : (T)a;
}
static inline float rsqrt(float x) { return 1.f / sqrtf(x); }
static inline double rsqrt(double x) { return 1. / sqrt(x); }
static inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
static inline float rcbrtf(float x) { return 1.f / cbrtf(x); }
static inline double rcbrt(double x) { return 1. / cbrt(x); }
static inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
static inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }
#define __expf expf   // the C library has functions of these names
#define __logf logf
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline float __int2float_rn(int x) { return (float)x; }
static inline int __float2int_rn(float x) { return (int)rintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
template <class T> static inline T __ldg(const T *address) { return *address; }

// ---- atomics: one thread runs at a time, up to a barrier
#define EMULATION_ATOMIC(type)                                                                                         \
    static inline type atomicAdd(type *p, type v) { const type old = *p; *p = old + v; return old; }                   \
    static inline type atomicExch(type *p, type v) { const type old = *p; *p = v; return old; }
#define EMULATION_ATOMIC_INTEGER(type)                                                                                 \
    EMULATION_ATOMIC(type)                                                                                             \
    static inline type atomicSub(type *p, type v) { const type old = *p; *p = old - v; return old; }                   \
    static inline type atomicCAS(type *p, type c, type v) { const type old = *p; if (old == c) *p = v; return old; }   \
    static inline type atomicMax(type *p, type v) { const type old = *p; if (v > old) *p = v; return old; }            \
    static inline type atomicMin(type *p, type v) { const type old = *p; if (v < old) *p = v; return old; }            \
    static inline type atomicOr(type *p, type v) { const type old = *p; *p = old | v; return old; }                    \
    static inline type atomicAnd(type *p, type v) { const type old = *p; *p = old & v; return old; }                   \
    static inline type atomicXor(type *p, type v) { const type old = *p; *p = old ^ v; return old; }
EMULATION_ATOMIC(float)
EMULATION_ATOMIC(double)
EMULATION_ATOMIC_INTEGER(int)
EMULATION_ATOMIC_INTEGER(unsigned)
EMULATION_ATOMIC_INTEGER(unsigned long long)
#undef EMULATION_ATOMIC
#undef EMULATION_ATOMIC_INTEGER
static inline long long atomicMax(long long *p, long long v)
{
    const long long old = *p;
    if (v > old)
        *p = v;
    return old;
}
static inline long long atomicMin(long long *p, long long v)
{
    const long long old = *p;
    if (v < old)
        *p = v;
    return old;
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
static inline void __trap() { emulation::emulation_trap("__trap was called"); }

// ---- threads that meet
static inline void __syncthreads() { emulation::emulation_sync_block(); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) { emulation::emulation_sync_warp(mask); }
template <class T> static inline T emulation_shuffle(unsigned mask, T value, int from)
{
    static_assert(sizeof(T) <= 8, "CUDA shuffles values of up to 8 bytes");
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = emulation::emulation_exchange(mask, bits)[from];
    memcpy(&value, &bits, sizeof value);
    return value;
}
// A warp may be cut into groups of ``width`` lanes; from beyond its group a lane gets its own value.
template <class T> static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
    const int lane = emulation::emulation_lane();
    return emulation_shuffle(mask, value, lane / width * width + (from & (width - 1)));
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
    const int lane = emulation::emulation_lane(), from = lane - (int)distance;
    return emulation_shuffle(mask, value, from < lane / width * width ? lane : from);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
    const int lane = emulation::emulation_lane(), from = lane + (int)distance;
    return emulation_shuffle(mask, value, from >= (lane / width + 1) * width ? lane : from);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32)
{
    const int lane = emulation::emulation_lane(), from = lane ^ bits;
    return emulation_shuffle(mask, value, from >= (lane / width + 1) * width ? lane : from);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    const unsigned long long *all = emulation::emulation_exchange(mask, predicate != 0);
    unsigned found = 0;
    for (int lane = 0; lane < 32; lane++)
        found |= (mask >> lane & 1u) && all[lane] ? 1u << lane : 0u;
    return found;
}
static inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

// ---- how the emulation calls a kernel: EMULATION_KERNEL(function, name) stands behind a kernel's text
template <typename T, int dimensions, bool contiguous, bool narrow> class CArray;   // cupy's
template <class T> struct emulation_is_address : std::is_pointer<T> {};
template <typename T, int n, bool c, bool i> struct emulation_is_address<CArray<T, n, c, i>> : std::true_type {};

template <class... Values, size_t... I>
static inline void emulation_call(void (*kernel)(Values...), void **given, std::index_sequence<I...>)
{
    kernel(*(std::remove_reference_t<Values> *)given[I]...);
}
template <class... Values> static inline void emulation_call(void (*kernel)(Values...), void **given)
{
    emulation_call(kernel, given, std::index_sequence_for<Values...>());
}
template <class... Values> static inline emulation::Kernel emulation_entry(void (*)(Values...), void (*call)(void **))
{
    static const emulation::Argument arguments[] = {
        {sizeof(std::remove_reference_t<Values>), emulation_is_address<std::remove_cv_t<Values>>::value}...,
        {0, false}};
    return {call, arguments, (int)sizeof...(Values)};
}
#define EMULATION_KERNEL(function, name)                                                                               \
    static void name##_call(void **given) { emulation_call(function, given); }                                         \
    extern "C" emulation::Kernel name##_kernel() { return emulation_entry(function, name##_call); }
