"""The CUDA sources without a GPU: compiled to PTX by NVRTC or nvcc, and run on the CPU, thread by thread.

On the CPU a header gives CUDA's words a meaning, g++ compiles the very text, and stand-ins for NVRTC and cupy's Module
call it once for every thread of the grid, last thread first: what the versions for cupy hand over is tested with it.
"""

import ctypes
import ctypes.util
import importlib.util
import inspect
import itertools
import pathlib
import re
import shutil
import subprocess
import types

import numpy as np
import pytest

from fleet_mpi import arrays
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.kernels import KERNELS
from fleet_mpi.kernels.cuda import (
    compiling as cuda_compiling,
    rank_sums as cuda_rank_sums,
    rows as cuda_rows,
    sequence as cuda_sequence,
    unscaling as cuda_unscaling,
    update as cuda_update,
)
from fleet_mpi.kernels.cuda.compiling import complete
from fleet_mpi.kernels.reference import rank_sums, rows, sequence, unscaling, update
from fleet_mpi.testing import DeviceArray, device

HERE = pathlib.Path(__file__).parent
FAMILIES = {"update": (cuda_update, ("float32", "float64")),
            "rank_sums": (cuda_rank_sums, ("float16", "float32", "float64")),
            "unscaling": (cuda_unscaling, ("float16", "float32", "float64")),
            "rows": (cuda_rows, ("float16", "float32", "float64", "int32", "int64")),
            "sequence": (cuda_sequence, ("float32", "float64"))}
ENTRIES = {"update": ("sgd", "momentum", "adam", "move_powers"), "rank_sums": ("sum_of_ranks",),
           "unscaling": ("unscale", "zero_if"), "rows": ("add_in_order",), "sequence": ("pool_sum", "pool_max")}
SOURCES = [pytest.param(complete(module.SOURCE, dtype), ENTRIES[family], id=f"{family}-{dtype}")
           for family, (module, dtypes) in FAMILIES.items() for dtype in dtypes]
SOURCES += [pytest.param(complete(cuda_unscaling.SCALE_SOURCE, dtype), ("next_scale",), id=f"next_scale-{dtype}")
            for dtype in ("float32", "float64")]
SOURCES += [pytest.param(complete(cuda_unscaling.TABLE_SOURCE, dtype), ("unscale_all", "zero_all_if"),
                         id=f"unscale_all-{dtype}") for dtype in ("float32", "float64")]
SOURCES += [pytest.param(complete(cuda_rows.TOTALS, dtype), ("total_rows",), id=f"total_rows-{dtype}")
            for dtype in ("float16", "float32", "float64")]
SOURCES.append(pytest.param(complete(cuda_rows.LINKS, "int64"), ("link_by_looking", "link_by_order"), id="links"))
SOURCES.append(pytest.param(complete(cuda_rows.LOOKING, "int64"), ("note_outside",), id="looking"))
ARCHITECTURES = (75, 80, 90, 100)  # from the oldest that CUDA 12 and 13 both compile for
# A block's threads have 64k registers to share: so many each let at least four blocks of THREADS run side by side.
MOST_REGISTERS = 64

# ---------------------------------------------------------------------- on the CPU

WORDS = r"""
#include <cmath>
#include <cstring>
#define __global__
#define __device__
using std::sqrt;
struct Numbers { unsigned x; };
static Numbers blockIdx, threadIdx, blockDim, gridDim;
extern "C" void become(unsigned block, unsigned thread, unsigned threads, unsigned blocks)
{
    blockIdx.x = block; threadIdx.x = thread; blockDim.x = threads; gridDim.x = blocks;
}
typedef unsigned long long counter;
static inline void __threadfence() {}
static inline counter atomicAdd(counter *at, counter x) { const counter was = *at; *at += x; return was; }
static inline counter atomicExch(counter *at, counter x) { const counter was = *at; *at = x; return was; }
static inline counter atomicMax(counter *at, counter x) { const counter was = *at; if (x > was) *at = x; return was; }
static inline float __uint_as_float(unsigned bits) { float x; std::memcpy(&x, &bits, 4); return x; }
static inline unsigned __float_as_uint(float x) { unsigned bits; std::memcpy(&bits, &x, 4); return bits; }
"""
CTYPES = {np.float32: ctypes.c_float, np.float64: ctypes.c_double, np.int32: ctypes.c_int, np.int64: ctypes.c_longlong,
          np.uint64: lambda address: ctypes.c_void_p(int(address))}


class OnTheCPU:
    """What cupy.cuda.Module is, with a compiled library of this machine in it."""

    folder, launched = None, []

    def load(self, code):
        self.library = ctypes.CDLL(code.decode())

    def get_function(self, name):
        function = getattr(self.library, name)

        def run(grid, block, arguments):
            self.launched.append(name)
            given = [ctypes.c_void_p(one.data.ptr) if isinstance(one, DeviceArray) else CTYPES[type(one)](one)
                     for one in arguments]
            for number, thread in itertools.product(reversed(range(grid[0])), reversed(range(block[0]))):
                self.library.become(number, thread, block[0], grid[0])
                function(*given)
        return run


class Compiler:
    """What cupy.cuda.nvrtc is, with g++ behind it; a program is the path of its text."""

    class NVRTCError(Exception):
        pass

    known = ARCHITECTURES
    options_seen, numbers = [], itertools.count()

    def getVersion(self):
        return 13, 0

    def getSupportedArchs(self):
        return self.known

    def createProgram(self, source, name, headers, include_names):
        path = OnTheCPU.folder / f"kernels{next(self.numbers)}.cpp"
        path.write_text(WORDS + source)
        return path

    def compileProgram(self, program, options):
        self.options_seen.append(options)
        command = ["g++", "-O2", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unused-function", "-shared", "-fPIC",
                   str(program), "-o", str(program.with_suffix(".so"))]
        made = subprocess.run(command, capture_output=True, text=True, timeout=60)
        program.with_suffix(".log").write_text(made.stderr)
        if made.returncode:
            raise self.NVRTCError

    def getProgramLog(self, program):
        return program.with_suffix(".log").read_text()

    def getCUBIN(self, program):
        assert "sm_" in self.options_seen[-1][-1]
        return str(program.with_suffix(".so")).encode()

    def getPTX(self, program):
        assert "compute_" in self.options_seen[-1][-1]
        return str(program.with_suffix(".so")).encode()

    def destroyProgram(self, program):
        program.unlink()


@pytest.fixture(scope="module")
def on_the_cpu(tmp_path_factory):
    """The stand-in for cupy compiles kernels for this machine, and is a device of capability 8.0."""
    if not shutil.which("g++"):
        pytest.skip("no g++ to run CUDA sources on the CPU with")
    OnTheCPU.folder = tmp_path_factory.mktemp("cuda")
    cuda = types.SimpleNamespace(
        nvrtc=Compiler(), Module=OnTheCPU, runtime=types.SimpleNamespace(getDevice=lambda: 0),
        Device=lambda number: types.SimpleNamespace(compute_capability="80"))
    kept = {name: device.cuda.__dict__.get(name) for name in vars(cuda)}
    forget()
    device.cuda.__dict__.update(vars(cuda))
    yield OnTheCPU
    for name, value in kept.items():
        if value is None:
            delattr(device.cuda, name)
        else:
            setattr(device.cuda, name, value)
    forget()


@pytest.fixture(autouse=True)
def nothing_launched():
    OnTheCPU.launched.clear()


def forget():
    cuda_compiling._function.cache_clear()
    cuda_compiling._module.cache_clear()


def cases():
    for family, (module, _) in FAMILIES.items():
        spec = importlib.util.spec_from_file_location(f"cuda_cases_of_{family}", HERE / f"test_{family}.py")
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        for name, makes in loaded.KERNEL_CASES.items():
            if hasattr(module, name):
                for number, make in enumerate(makes):
                    yield pytest.param(family, name, make, id=f"{name}-{number}")


def on_device(arguments):
    return [device.array(one) if isinstance(one, np.ndarray) else one for one in arguments]


def assert_same_bits(got, expected):
    for one, other in zip(got, expected, strict=True):
        if isinstance(other, np.ndarray):
            np.testing.assert_array_equal(device.asnumpy(one), other)


@pytest.mark.parametrize("family, name, make", list(cases()))
def test_on_the_cpu_the_source_gives_the_bits_of_the_reference(family, name, make, on_the_cpu):
    expected = make(np.random.default_rng(5))
    arguments = on_device(expected)
    with np.errstate(all="ignore"):
        KERNELS[family, name].reference(*expected)
        getattr(FAMILIES[family][0], name)(*arguments)
    assert_same_bits(arguments, expected)
    is_empty = any(isinstance(one, np.ndarray) and not one.size for one in expected)
    # The beta powers are there even for a parameter without elements; rows are linked, then added up.
    launches = 1 + (name in ("adam_unless", "total_rows"))
    assert len(on_the_cpu.launched) in ({0, 1} if is_empty else {launches}), "the reference ran"


@pytest.mark.parametrize("family, name", [(family, name) for family, (module, _) in FAMILIES.items()
                                          for name in dir(module) if (family, name) in KERNELS])
def test_the_version_for_cupy_takes_the_arguments_of_its_reference(family, name):
    version = KERNELS[family, name].version("cuda")
    assert list(inspect.signature(version).parameters) == list(
        inspect.signature(KERNELS[family, name].reference).parameters)


def test_every_half_stays_what_it_is(on_the_cpu):
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    out = device.empty(1 << 16, "float16")
    cuda_rank_sums.sum_of_half_ranks(device.array(halves.reshape(1, -1)), out)
    got = device.asnumpy(out)
    is_number = ~np.isnan(halves)
    assert np.isnan(got[~is_number]).all()
    assert (got.view(np.uint16)[is_number] == halves.view(np.uint16)[is_number]).all()


def test_sums_of_halves_are_rounded_as_numpy_rounds(on_the_cpu):
    bits = np.random.default_rng(3).integers(0, 1 << 16, (2, 40_000)).astype(np.uint16)
    # Around the border to the smallest ones, where steps change, and around the largest.
    bits[:, :10_000] &= 0x87ff
    bits[:, 10_000:20_000] |= 0x7800
    halves = np.where(np.isfinite(bits.view(np.float16)), bits, 0).astype(np.uint16).view(np.float16)
    expected, out = np.empty(40_000, np.float16), device.empty(40_000, "float16")
    with np.errstate(over="ignore"):
        rank_sums.sum_of_half_ranks.reference(halves, expected)
    cuda_rank_sums.sum_of_half_ranks(device.array(halves), out)
    np.testing.assert_array_equal(device.asnumpy(out), expected)
    assert np.isinf(expected).any()


def test_more_elements_than_threads_are_taken_in_strides(on_the_cpu, monkeypatch):
    monkeypatch.setattr(cuda_compiling, "MOST_BLOCKS", 2)
    param, grad, rate = np.arange(2000.0), np.ones(2000), np.array([0.5])
    there = on_device((param, grad, rate))
    cuda_update.sgd(*there)
    update.sgd.reference(param, grad, rate)
    assert_same_bits(there[:1], [param])


def test_what_a_source_does_not_fit_is_left_to_the_reference(on_the_cpu):
    for make in (lambda: np.arange(6, dtype=np.float16), lambda: np.arange(12, dtype=np.float32)[::2]):
        param, rate = make(), np.array([0.5], np.float32)
        there = DeviceArray(make())
        cuda_update.sgd(there, DeviceArray(make()), DeviceArray(rate))
        update.sgd.reference(param, make(), rate)
        assert_same_bits([there], [param])
    assert not on_the_cpu.launched


def test_ids_may_be_a_column_of_a_matrix(on_the_cpu):
    table, pairs = np.zeros((3, 2)), np.array([[2, 9], [1, 8], [2, 7]])
    there, note = device.array(table), device.zeros(rows.NOTE_SIZE, "int64")
    ids = DeviceArray(pairs)[:, 0]
    cuda_rows.note_outside(ids, 0, 3, 0, 1, note)
    cuda_rows.scatter_add_rows(there, ids, device.ones((3, 2)), rows.NO_PADDING)
    assert not device.asnumpy(note).any()
    np.testing.assert_array_equal(device.asnumpy(there), [[0, 0], [1, 1], [2, 2]])


@pytest.mark.parametrize("count", [1, 300])
def test_many_ids_are_sorted_to_be_linked(count, on_the_cpu, monkeypatch):
    monkeypatch.setattr(cuda_rows, "MOST_WITHOUT_SORT", 0)
    rng = np.random.default_rng(4)
    ids, values = rng.integers(-3, 30, count), rng.standard_normal((count, 2))
    made, there = [np.zeros_like(ids), np.zeros_like(values)], on_device((np.zeros_like(ids), np.zeros_like(values)))
    rows.total_rows.reference(ids, values, 25, *made)
    cuda_rows.total_rows(*on_device((ids, values)), 25, *there)
    assert_same_bits(there, made)
    assert on_the_cpu.launched == ["link_by_order", "total_rows"]


def test_these_options_and_no_others_are_passed(on_the_cpu):
    forget()
    Compiler.options_seen.clear()
    cuda_update.sgd(*on_device((np.ones(1), np.ones(1), np.ones(1))))
    assert Compiler.options_seen == [(*cuda_compiling.OPTIONS, "--gpu-architecture=sm_80")]
    assert {"--fmad=false", "--ftz=false"} < set(cuda_compiling.OPTIONS)


def test_a_device_newer_than_the_compiler_gets_ptx(on_the_cpu, monkeypatch):
    forget()
    monkeypatch.setattr(Compiler, "known", (52, 75))
    cuda_update.sgd(*on_device((np.ones(1), np.ones(1), np.ones(1))))
    assert Compiler.options_seen[-1][-1] == "--gpu-architecture=compute_75"
    forget()


def test_a_source_that_does_not_compile_is_one_sentence(on_the_cpu):
    with pytest.raises(EnvironmentProblem, match=r"(?s)NVRTC \(13, 0\) cannot compile a kernel for sm_80.*error"):
        cuda_compiling.launch("nonsense", "sgd", 1, device.ones(1))


def test_arrays_of_cupy_get_the_version_for_it(monkeypatch):
    class Array:
        pass
    monkeypatch.setitem(arrays._modules, Array, types.ModuleType("cupy"))
    for kernel, version in ((update.adam, cuda_update.adam), (unscaling.unscale, cuda_unscaling.unscale),
                            (rank_sums.sum_of_ranks, cuda_rank_sums.sum_of_ranks),
                            (rows.scatter_add_rows, cuda_rows.scatter_add_rows),
                            (rows.note_outside, cuda_rows.note_outside),
                            (sequence.pool_max, cuda_sequence.pool_max),
                            (update.adagrad, update.adagrad.reference)):
        assert kernel.pick(Array()) is version
        del kernel._by_type[Array]


# ---------------------------------------------------------------------- to PTX


def nvrtc():
    """NVRTC from the package index (pip install '.[ptx]') or of the system; skips where there is none."""
    spec = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cuda_nvrtc")
    found = [path for folder in (spec.submodule_search_locations if spec else ())
             for path in sorted(pathlib.Path(folder, "lib").glob("libnvrtc.so.*"))]
    name = str(found[0]) if found else ctypes.util.find_library("nvrtc")
    if name is None:
        pytest.skip("no NVRTC here: pip install nvidia-cuda-nvrtc-cu12")
    return ctypes.CDLL(name)


def told(library, program, what):
    """A text of NVRTC's: its size is asked for first."""
    size = ctypes.c_size_t()
    assert getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value)
    assert getattr(library, f"nvrtcGet{what}")(program, text) == 0
    return text.value.decode()


def by_nvrtc(source, architecture=ARCHITECTURES[0]):
    """(PTX, what the assembler said of every kernel): compiled to machine code, as on a device of this architecture."""
    library, program = nvrtc(), ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None) == 0
    options = [option.encode() for option in (*cuda_compiling.OPTIONS, f"--gpu-architecture=sm_{architecture}",
                                              "--ptxas-options=-v")]
    code = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    log = told(library, program, "ProgramLog")
    assert code == 0 and "warning" not in log, log
    ptx = told(library, program, "PTX")
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx, log


def nvcc():
    """The path of nvcc; skips where there is none."""
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not found:
        pytest.skip("no nvcc here")
    return found


def by_nvcc(source, tmp_path, *options):
    """(the file that nvcc made of a source, what it said)."""
    (tmp_path / "kernels.cu").write_text(source)
    command = [nvcc(), *options, *cuda_compiling.OPTIONS, "kernels.cu", "-o", "made"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    return tmp_path / "made", made.stdout + made.stderr


def assert_exact_ptx(ptx, entries):
    assert all(f".entry {name}(" in ptx for name in entries)
    assert "fma.rn" not in ptx, "contracted: the bits would be others"
    assert "div.approx" not in ptx and "div.full" not in ptx and "sqrt.approx" not in ptx and ".ftz" not in ptx


def assert_no_spills(said, kernels):
    """All numbers of so many kernels are in registers, and few enough."""
    assert said.count("0 bytes spill stores, 0 bytes spill loads") == kernels, said
    registers = [int(one) for one in re.findall(r"Used (\d+) registers", said)]
    assert len(registers) == kernels and max(registers) <= MOST_REGISTERS, said


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("source, entries", SOURCES)
def test_nvrtc_compiles_the_source_to_exact_arithmetic_without_spills(source, entries, architecture):
    ptx, said = by_nvrtc(source, architecture)
    assert_exact_ptx(ptx, entries)
    assert_no_spills(said, len(entries))


@pytest.mark.parametrize("source, entries", [SOURCES[0], SOURCES[2]])
def test_nvcc_compiles_the_source_to_exact_arithmetic(source, entries, tmp_path):
    made, _ = by_nvcc(source, tmp_path, "-ptx", f"-arch=compute_{ARCHITECTURES[0]}")
    assert_exact_ptx(made.read_text(), entries)


@pytest.mark.slow
@pytest.mark.parametrize("source, entries", SOURCES)
def test_no_kernel_spills_registers(source, entries, tmp_path):
    targets = [f"-gencode=arch=compute_{one},code=sm_{one}" for one in ARCHITECTURES]
    _, said = by_nvcc(source, tmp_path, "-fatbin", "-Xptxas", "-v", *targets)
    assert_no_spills(said, len(entries) * len(ARCHITECTURES))


def test_without_the_options_numbers_are_contracted_and_flushed(monkeypatch):
    monkeypatch.setattr(cuda_compiling, "OPTIONS", ("-ftz=true",))
    ptx, _ = by_nvrtc(complete(cuda_update.SOURCE, "float32"))
    assert "fma.rn" in ptx and ".ftz" in ptx
