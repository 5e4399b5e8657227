"""The emulation itself: it does what CUDA promises, and fails where a GPU would."""

import subprocess
import sys

import numpy as np
import pytest

from tests.gpu.device_jobs import environment
from tests.gpu_emulation.counters import counted
from tests.mpi.jobs import clean_environment

cupy = pytest.importorskip("cupy", reason="cupy is not installed; tests/gpu_emulation brings it along")


def run_alone(text, devices=1, asynchronous=False, **settings):
    """Run a text in a process of its own, with the settings; what it printed."""
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120,
                           env={**clean_environment(), **environment(devices, asynchronous, **settings)})
    return ended.stdout + ended.stderr


def test_new_memory_is_poisoned(emulation):
    with cupy.cuda.using_allocator(None):   # a pool hands out memory that tests before have used
        assert np.isnan(cupy.empty(1 << 20, "float32").get()).all()


def test_counts(emulation):
    array = cupy.arange(6, dtype="float32")
    with counted() as counts:
        (array + 1.0).get()
        array.reshape(2, 3) @ array.reshape(3, 2)
    assert (counts.launches, counts.downloads, counts.blas_calls, counts.uploads) == (1, 1, 1, 0)


def test_nothing_runs_until_somebody_waits(emulation):
    said = run_alone("""
import cupy
from cupyx import empty_pinned
stream, host = cupy.cuda.Stream(non_blocking=True), empty_pinned(3, "float32")
host[...] = 7
with stream:
    array = cupy.zeros(3, "float32") + 1
    array.get(out=host, stream=stream, blocking=False)
print(host.tolist(), stream.done, stream.done, stream.done, host.tolist())
""", asynchronous=True)
    assert said.splitlines()[-1] == "[7.0, 7.0, 7.0] False False True [1.0, 1.0, 1.0]", said


def test_threads_of_a_block_meet(emulation):
    kernel = cupy.RawKernel(r"""
extern "C" __global__ void turn(const float *from, float *to) {
    extern __shared__ float all[];
    all[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    float sum = all[blockDim.x - 1 - threadIdx.x];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    to[threadIdx.x] = __shfl_sync(0xffffffffu, sum, 0);
}""", "turn")
    values, sums = cupy.arange(64, dtype="float32"), cupy.empty(64, "float32")
    kernel((1,), (64,), (values, sums), shared_mem=256)
    assert sums.get().tolist() == [sum(range(32, 64))] * 32 + [sum(range(32))] * 32


def test_a_kernel_that_gets_memory_of_the_host_is_refused(emulation):
    kernel = cupy.RawKernel('extern "C" __global__ void set(float *to) { *to = 1; }', "set")
    host = np.zeros(1, "float32")
    with pytest.raises(cupy.cuda.driver.CUDADriverError):
        kernel((1,), (1,), (host.ctypes.data,))
    device = cupy.zeros(1, "float32")
    kernel((1,), (1,), (device,))
    assert device.get() == [1]


def test_the_memory_of_a_device_is_its_own(emulation):
    said = run_alone("""
import cupy
with cupy.cuda.Device(1):
    array = cupy.arange(3)
print(array.device.id, cupy.asnumpy(array).tolist(), flush=True)
array + 1
""", devices=2)
    assert "1 [0, 1, 2]" in said and "Error" in said.splitlines()[-1], said


def test_devices_are_those_that_are_visible(emulation):
    text = "import cupy; print(cupy.cuda.runtime.getDeviceCount())"
    assert run_alone(text, devices=4, CUDA_VISIBLE_DEVICES="2,3") == "2\n"


def test_kernels_can_be_skipped(emulation):
    text = "import cupy; print(cupy.zeros(3).sum().get())"
    assert run_alone(text) == "0.0\n" and "nan" in run_alone(text, FLEET_EMULATION_NOOP="1")


def test_sorts(emulation):
    values = np.random.default_rng(3).permutation(20).astype("float32")
    array = cupy.asarray(values)
    assert cupy.sort(array).get().tolist() == sorted(values.tolist())
    assert cupy.argsort(array).get().tolist() == np.argsort(values).tolist()


NCCL = """
import sys, cupy, threading
from cupy.cuda import nccl
name, sums = nccl.get_unique_id(), {}
def work(rank):
    cupy.cuda.Device(rank % DEVICES).use()
    communicator = nccl.NcclCommunicator(2, name, rank)
    array, stream = cupy.full(100_000, rank + 1, "float32"), cupy.cuda.Stream(non_blocking=True)
    stream.wait_event(cupy.cuda.get_current_stream().record())
    communicator.allReduce(array.data.ptr, array.data.ptr, array.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream.ptr)
    stream.synchronize()
    sums[rank] = set(array.get().tolist())
threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
[one.start() for one in threads], [one.join() for one in threads]
print(sums)
"""


@pytest.mark.parametrize("asynchronous", (False, True))
def test_nccl_adds_up_over_threads(emulation, asynchronous):
    said = run_alone(NCCL.replace("DEVICES", "2"), devices=2, asynchronous=asynchronous)
    assert said.splitlines()[-1] in ("{0: {3.0}, 1: {3.0}}", "{1: {3.0}, 0: {3.0}}"), said


def test_nccl_refuses_two_ranks_on_one_device(emulation):
    assert "NCCL_ERROR_INVALID_USAGE" in run_alone(NCCL.replace("DEVICES", "1"), devices=2)
