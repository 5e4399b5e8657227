"""CUDAPlace: without a GPU one line and the CPU, or a refusal; with GPUs (a stand-in for cupy) one device per rank."""

import contextlib
import re
import threading
import types

import numpy as np
import pytest

from fleet_mpi import arrays, fluid, notices, settings
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.program.engine import places
from fleet_mpi.program.engine.places import CUDAPlace, Place, cuda_places
from fleet_mpi.ranks.devices import HINTS
from fleet_mpi.testing import device

SILENT = {**dict.fromkeys(HINTS, -1), "FLAGS_selected_gpus": "", "FLEET_MPI_STRICT_DEVICE": False}


@pytest.fixture(autouse=True)
def alone():
    """No launcher, whatever started these tests."""
    with settings.override(**SILENT):
        yield


@pytest.fixture
def said(monkeypatch):
    """What is said once is said again here; the list of lines."""
    lines = []
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.setattr(notices, "log", lambda: types.SimpleNamespace(warning=lines.append))
    return lines


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(places, "why_no_gpu", lambda: "no GPU on this machine")


@pytest.fixture
def gpus(monkeypatch):
    """A machine with four GPUs; the list of devices that were chosen."""
    used = []
    with machine_with(Device(used), np.asarray, monkeypatch):
        yield used


class Device:
    """cupy's, as far as it is used; ``used`` are those that were chosen for good."""

    def __init__(self, used):
        self.used, self.entered = used, []

    def __call__(self, number):
        @contextlib.contextmanager
        def chosen():
            self.entered.append(number)
            yield
        made = chosen()
        made.use = lambda: self.used.append(number)
        return made


@contextlib.contextmanager
def machine_with(made, asarray, monkeypatch):
    """Four GPUs that compute with what ``asarray`` gives."""
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 4, runtimeGetVersion=lambda: 13000)
    cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime, Device=made), asarray=asarray,
                                 asnumpy=np.asarray)
    monkeypatch.setattr(arrays, "cupy_module", lambda: cupy)
    places.why_no_gpu.cache_clear()
    yield
    places.why_no_gpu.cache_clear()


class WithoutNvrtc:
    """A device array where libraries are missing."""

    def __init__(self, values):
        pass

    def __add__(self, other):
        raise RuntimeError('Failure finding "libnvrtc.so.13"')


class WithoutBlas(WithoutNvrtc):
    """It adds, but does not multiply."""

    def __add__(self, other):
        return 2.0

    def __matmul__(self, other):
        raise ImportError("Failure finding libcublas.so.13")


@pytest.mark.parametrize("asarray, missing", ((WithoutNvrtc, "NVRTC is missing.*libnvrtc"),
                                              (WithoutBlas, "cuBLAS is missing.*ImportError.*libcublas")))
def test_a_gpu_without_the_toolkit_is_none_and_says_what_to_install(asarray, missing, monkeypatch):
    with machine_with(Device([]), asarray, monkeypatch):
        assert re.search(missing + r".*pip install '\.\[cuda13\]'", places.why_no_gpu())
        assert not places.is_compiled_with_cuda() and places.cuda_device_count() == 0


def test_what_is_computed_to_find_out_is_computed_on_the_rank_s_own_device(monkeypatch):
    made = Device([])
    with machine_with(made, np.asarray, monkeypatch), settings.override(OMPI_COMM_WORLD_LOCAL_RANK=2):
        assert places.why_no_gpu() is None
    assert set(made.entered) == {2}


def test_without_a_gpu_one_line_says_that_the_cpu_computes(no_gpu, said):
    assert CUDAPlace(0).array_module() is np and CUDAPlace(1).array_module() is np
    assert said == ["CUDAPlace(0): no GPU on this machine; running on the CPU instead"]


def test_of_several_ranks_on_a_machine_the_first_says_it(no_gpu, said):
    with settings.override(OMPI_COMM_WORLD_LOCAL_RANK=1):
        assert CUDAPlace(1).array_module() is np
    assert not said


def test_a_script_for_a_gpu_runs_without_one(no_gpu, said):
    executor = fluid.Executor(fluid.CUDAPlace(0))
    main = fluid.Program()
    with fluid.program_guard(main):
        three = fluid.layers.fill_constant([1], "float32", 3.0)
    assert executor.run(main, fetch_list=[three])[0].tolist() == [3] and len(said) == 1


def test_the_strict_setting_refuses_to_fall_back(no_gpu, said):
    with settings.override(FLEET_MPI_STRICT_DEVICE=True), pytest.raises(EnvironmentProblem, match="no GPU on this"):
        CUDAPlace(0).array_module()
    assert not said


def test_a_place_without_a_number_is_the_rank_s_own(gpus):
    with settings.override(OMPI_COMM_WORLD_LOCAL_RANK=2):
        assert CUDAPlace() == CUDAPlace(2) == places.set_device("gpu")
        places.set_device("cpu")
        CUDAPlace().array_module()
    assert gpus == [2]


def test_selected_gpus_come_before_the_number(gpus):
    with settings.override(OMPI_COMM_WORLD_LOCAL_RANK=1, FLAGS_selected_gpus="1,3"):
        assert CUDAPlace() == CUDAPlace(3) and cuda_places() == [CUDAPlace(3)]


def test_a_process_alone_may_use_all_gpus_or_those_selected(gpus):
    assert cuda_places() == [CUDAPlace(number) for number in range(4)]
    with settings.override(FLAGS_selected_gpus="1,3"):
        assert cuda_places() == [CUDAPlace(1), CUDAPlace(3)]
    assert cuda_places([2]) == [CUDAPlace(2)]


def test_an_executor_chooses_its_device_in_every_thread():
    chosen = []

    class StandInPlace(Place):
        def array_module(self):
            chosen.append(threading.current_thread())
            return device
    executor, main = fluid.Executor(StandInPlace()), fluid.Program()
    with fluid.program_guard(main):
        three = fluid.layers.fill_constant([1], "float32", 3.0)
    threads = [threading.Thread(target=executor.run, args=(main,), kwargs={"fetch_list": [three]}) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    assert set(chosen) == set(threads)


def test_a_device_that_is_not_there_is_refused(gpus):
    with pytest.raises(EnvironmentProblem, match=r"CUDAPlace\(4\): expected a GPU from 0 to 3.*CUDA_VISIBLE_DEVICES"):
        CUDAPlace(4).array_module()
    assert not gpus
