"""CUDA sources run on the CPU, block by block: what tests put in the place of cupy's compiler, launches and cuBLAS.

g++ compiles the very text. The threads of a block are contexts that take turns, the last one first, and change at every
``__syncthreads``; so sums over a block are tested too. Products are numpy's, on the memory that cuBLAS would be given.
"""

import ctypes
import re
import subprocess
import types

import numpy as np

from fleet_mpi.kernels.cuda import compiling
from fleet_mpi.testing import DeviceArray, device

WORDS = r"""
#include <cmath>
#include <csetjmp>
#include <cstring>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#define __global__
#define __device__
#define __shared__ static
using std::exp; using std::fabs; using std::log; using std::log1p; using std::sqrt;
struct Numbers { unsigned x; };
static Numbers blockIdx, threadIdx, blockDim, gridDim;
static inline float __uint_as_float(unsigned bits) { float x; std::memcpy(&x, &bits, 4); return x; }
static inline unsigned __float_as_uint(float x) { unsigned bits; std::memcpy(&bits, &x, 4); return bits; }

// Contexts begin a thread; jumps, which ask nothing of the system, change between those that have begun.
struct Thread { ucontext_t context; jmp_buf place; char stack[1 << 14]; bool begun, over; };
static Thread threads[512];
static jmp_buf scheduler;
static void (*entry)(void **);
static void **given;
static void __syncthreads() { if (!_setjmp(threads[threadIdx.x].place)) _longjmp(scheduler, 1); }
static void thread_main() { entry(given); threads[threadIdx.x].over = true; _longjmp(scheduler, 1); }

static void resume(Thread &mine)
{
    if (_setjmp(scheduler))
        return;
    if (mine.begun)
        _longjmp(mine.place, 1);
    mine.begun = true;
    getcontext(&mine.context);
    mine.context.uc_stack.ss_sp = mine.stack;
    mine.context.uc_stack.ss_size = sizeof mine.stack;
    mine.context.uc_link = nullptr;
    makecontext(&mine.context, thread_main, 0);
    setcontext(&mine.context);
}

static void run_block_in_turns()
{
    for (unsigned i = 0; i < blockDim.x; i++)
        threads[i].begun = threads[i].over = false;
    for (bool any = true; any;) {
        any = false;
        for (threadIdx.x = blockDim.x; threadIdx.x-- > 0;)
            if (!threads[threadIdx.x].over) {
                resume(threads[threadIdx.x]);
                any = true;
            }
    }
}

static void run_grid(void (*call)(void **), void **arguments, unsigned blocks, unsigned count, bool in_turns)
{
    entry = call; given = arguments; gridDim.x = blocks; blockDim.x = count;
    for (blockIdx.x = blocks; blockIdx.x-- > 0;) {
        if (in_turns)
            run_block_in_turns();
        else
            for (threadIdx.x = count; threadIdx.x-- > 0;)
                call(arguments);
    }
}

template <class... A, size_t... I> static void unpack(void (*f)(A...), void **p, std::index_sequence<I...>)
{
    f(*(typename std::remove_reference<A>::type *)p[I]...);
}
template <class... A> static void unpack(void (*f)(A...), void **p) { unpack(f, p, std::index_sequence_for<A...>()); }
#define ENTRY(name, in_turns) extern "C" void run_##name(void **p, unsigned blocks, unsigned threads) \
    { run_grid([](void **q) { unpack(name, q); }, p, blocks, threads, in_turns); }
"""
GXX = ["g++", "-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unused-function", "-shared", "-fPIC"]


class Compiler:
    """In the place of ``compiling._function``: functions that run on the CPU; remembers what was launched."""

    def __init__(self, folder):
        self.folder, self.libraries, self.launched = folder, {}, []

    def function(self, *key):
        """A function of a source by (..., text, name, type of the numbers)."""
        text, name, dtype = key[-3:]
        if (text, dtype) not in self.libraries:
            self.libraries[text, dtype] = self._compiled(compiling.complete(text, dtype))
        run = getattr(self.libraries[text, dtype], "run_" + name)

        def launch(grid, block, arguments):
            self.launched.append(name)
            held = [_argument(one) for one in arguments]
            run((ctypes.c_void_p * len(held))(*(one.ctypes.data for one in held)), grid[0], block[0])
        return launch

    def _compiled(self, source):
        entries = re.findall(r'extern "C" __global__ void (\w+)', source)
        path = self.folder / f"source{len(self.libraries)}.cpp"
        in_turns = "true" if "__syncthreads" in source else "false"
        path.write_text(WORDS + source + "".join(f"ENTRY({name}, {in_turns})\n" for name in entries))
        made = subprocess.run([*GXX, str(path), "-o", str(path.with_suffix(".so"))], capture_output=True, text=True,
                              timeout=120)
        assert made.returncode == 0, made.stderr
        return ctypes.CDLL(str(path.with_suffix(".so")))


def _argument(one):
    """A host array that holds an argument as a kernel is given it."""
    if isinstance(one, DeviceArray):
        return np.array([one.data.ptr], np.uint64)
    assert isinstance(one, (np.generic, np.ndarray)), f"a kernel takes no {type(one).__name__}"
    return np.atleast_1d(np.asarray(one))


def gemm_strided_batched(handle, turn_a, turn_b, m, n, k, alpha, a, type_a, lead_a, step_a, b, type_b, lead_b, step_b,
                         beta, c, type_c, lead_c, step_c, count, computed, algorithm):
    """cuBLAS's gemmStridedBatchedEx on host memory: C = alpha A B + beta C, matrices by columns."""
    dtype, made, factors = (np.dtype(("float32", "float64", "float16")[type]) for type in (type_a, type_c, type_a % 2))
    assert type_a == type_b and type_c in (type_a, type_a % 2) and computed == (68, 70)[type_a % 2]
    alpha, beta = (_at(address, (1,), (1,), factors)[0] for address in (alpha, beta))
    for i in range(count):
        left = _matrix(a, i * step_a, m, k, lead_a, turn_a, dtype)
        right = _matrix(b, i * step_b, k, n, lead_b, turn_b, dtype)
        out = _matrix(c, i * step_c, m, n, lead_c, 0, made)
        product = alpha * (left.astype(factors) @ right.astype(factors))
        out[...] = product if beta == 0 else product + beta * out  # cuBLAS does not read C then


def _matrix(address, offset, rows, columns, lead, turned, dtype):
    assert lead >= (columns if turned else rows)
    shape = (columns, rows) if turned else (rows, columns)
    found = _at(address + offset * dtype.itemsize, shape, (1, lead), dtype)
    return found.T if turned else found


def _at(address, shape, steps, dtype):
    length = sum((size - 1) * step for size, step in zip(shape, steps)) + 1
    raw = np.frombuffer((ctypes.c_char * (length * dtype.itemsize)).from_address(address), dtype)
    return np.lib.stride_tricks.as_strided(raw, shape, [step * dtype.itemsize for step in steps])


def install(monkeypatch, folder):
    """Let the stand-in for cupy compile for this machine; returns the Compiler."""
    compiler = Compiler(folder)
    monkeypatch.setattr(compiling, "_function", compiler.function)
    for name, value in {"runtime": types.SimpleNamespace(getDevice=lambda: 0),
                        "cublas": types.SimpleNamespace(gemmStridedBatchedEx=gemm_strided_batched),
                        "get_cublas_handle": lambda: 0,
                        "get_current_stream": lambda: types.SimpleNamespace(ptr=0)}.items():
        monkeypatch.setattr(device.cuda, name, value, raising=False)
    return compiler
