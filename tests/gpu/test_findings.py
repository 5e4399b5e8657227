"""What real cupy does otherwise than numpy, and once broke ops: each on a device, or on an emulation of one."""

import ctypes.util
import os
import subprocess
import sys

import numpy as np
import pytest

from fleet_mpi import arrays
from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels.cuda import compiling
from fleet_mpi.kernels.reference import rows, sequence, update
from fleet_mpi.program.engine.places import CUDAPlace, why_no_gpu
from tests.mpi.jobs import ROOT
from tests.unit.program.ops.checking import Built, Case

pytestmark = pytest.mark.skipif(why_no_gpu() is not None, reason=f"a GPU or an emulation of one: {why_no_gpu()}")

RNG = np.random.default_rng(2)


@pytest.fixture
def cupy():
    CUDAPlace(0).array_module()
    return arrays.cupy_module()


# NVIDIA's wheels, which cupy would find in site-packages, do not count: .ci/run has NVRTC's.
WHY = """
import site
site.ENABLE_USER_SITE, site.getsitepackages = False, lambda: []
from fleet_mpi.program.engine.places import why_no_gpu
print(why_no_gpu())
"""


@pytest.mark.parametrize("name, said", (("nvrtc", "NVRTC is missing"), ("cublas", "cuBLAS is missing")))
def test_a_driver_without_the_toolkit_is_no_gpu(emulation, tmp_path, name, said):
    if ctypes.util.find_library(name):
        pytest.skip(f"this machine has lib{name} of its own")
    for path in (emulation / "lib").iterdir():
        if not path.name.startswith(f"lib{name}"):
            (tmp_path / path.name).symlink_to(path)
    ended = subprocess.run([sys.executable, "-c", WHY], capture_output=True, text=True, timeout=120, cwd=ROOT,
                           env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert said in ended.stdout and "pip install '.[cuda13]'" in ended.stdout, ended.stdout + ended.stderr


def test_products_of_stacks_of_matrices():
    left, right = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((2, 4, 5))
    built = Built(Case("matmul_v2", {"X": left, "Y": right}, outputs={"Out": [0]}))
    found, = built.run(["Out_out_0"], CUDAPlace(0))
    np.testing.assert_allclose(found, left @ right, rtol=1e-12)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_the_largest_of_a_sequence_is_exact_and_may_be_nan(cupy, dtype):
    x = np.array([[.1, .3], [.3, np.nan], [.2, .1], [-0.0, 5], [0.0, 5]], dtype)
    offsets = np.array([0, 3, 3, 5])
    for module in (np, cupy):
        out, index = module.empty((3, 2), dtype), module.empty((3, 2), "int32")
        sequence.pool_max(module.asarray(x), module.asarray(offsets), 7.0, out, index)
        out, index = arrays.to_host(out), arrays.to_host(index)
        np.testing.assert_array_equal(out, np.array([[.3, np.nan], [7, 7], [-0.0, 5]], dtype))
        np.testing.assert_array_equal(index, [[1, 1], [-1, -1], [3, 3]])


def test_a_label_that_names_no_class_is_the_error_of_the_host():
    case = Case("softmax_with_cross_entropy", {"Logits": np.zeros((3, 2)), "Label": np.array([[1], [5], [0]])},
                outputs={"Softmax": [0], "Loss": [0]})
    said = []
    for place in (None, CUDAPlace(0)):
        with pytest.raises(ProgramError) as error:
            Built(case).run(["Loss_out_0"], place)
        said.append(str(error.value))
    assert said[0] == said[1] and "label 5 at position 1 names no class" in said[0]


def test_our_sources_are_compiled_without_the_options_that_cupy_appends(cupy, monkeypatch):
    seen, real = [], cupy.cuda.nvrtc.compileProgram
    monkeypatch.setattr(cupy.cuda.nvrtc, "compileProgram",
                        lambda program, options: seen.append(options) or real(program, options))
    compiling._function.cache_clear()
    compiling._module.cache_clear()
    param = cupy.ones(3, "float32")
    update.sgd(param, cupy.ones(3, "float32"), cupy.full(1, 0.5, "float32"))
    (options,) = seen
    assert options[:-1] == compiling.OPTIONS and options[-1].startswith("--gpu-architecture=")
    assert param.get().tolist() == [0.5] * 3


def test_numbers_below_the_smallest_normal_one_stay(cupy):
    param, grad, rate = np.float32([0, 1e-40]), np.float32([3e-39, 1e-42]), np.float32([0.5])
    there = [cupy.asarray(one) for one in (param, grad, rate)]
    update.sgd(param, grad, rate)
    update.sgd(*there)
    np.testing.assert_array_equal(there[0].get(), param)
    assert param.all()


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
def test_rows_of_one_id_are_added_in_order(cupy, dtype):
    ids, values = RNG.integers(0, 3, 3000), RNG.standard_normal((3000, 2)).astype(dtype)
    table, there = np.zeros((3, 2), dtype), cupy.zeros((3, 2), dtype)
    np.add.at(table, ids, values)
    for _ in range(2):
        there.fill(0)
        rows.add_at(there, cupy.asarray(ids), cupy.asarray(values))
        np.testing.assert_array_equal(there.get(), table)
