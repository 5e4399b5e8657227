"""The checks of ``gpu-check`` on the stand-in for a device: they pass there, and each can fail."""

import numpy as np
import pytest

from fleet_mpi.kernels import Kernel
from fleet_mpi.launch.gpu_check import kernel_checks, layer_cases, memory_checks, op_checks, speed_checks
from fleet_mpi.launch.gpu_check.findings import FAIL, OK
from fleet_mpi.launch.gpu_check.op_cases import CASES
from fleet_mpi.launch.gpu_check.part import MODULES
from fleet_mpi.runtime.device_copies import DeviceFlat
from fleet_mpi.testing import device
from tests.unit.program.ops.checking import StandInPlace


def states(found):
    return [(one.name, one.text) for one in found if one.state != OK]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_an_op_gives_the_same_on_a_device(case):
    found = op_checks.compare(case, StandInPlace())
    assert found.state == OK, found
    has_gradients = any(name.startswith("gradient") for name in found.numbers)
    assert has_gradients == case.has_gradient and len(found.numbers) > case.outputs - 1


def test_a_wrong_value_and_an_error_are_findings(monkeypatch):
    good = op_checks.values
    monkeypatch.setattr(op_checks, "values", lambda case, place: {
        name: array + isinstance(place, StandInPlace) * array.dtype.type(1e-3) for name, array in good(case,
                                                                                                        place).items()})
    case = next(one for one in CASES if one.name == "matmul")
    found = op_checks.compare(case, StandInPlace())
    assert found.state == FAIL and "of its largest value, expected at most 0.0001" in found.text
    found = op_checks.compare(case._replace(build=lambda x, y: 1 / 0), StandInPlace())
    assert (found.state, found.text) == (FAIL, "ZeroDivisionError: division by zero")


@pytest.mark.parametrize("got, expected, differ", (
    (np.float32([1, 2]), np.float32([1, 4]), 0.5), (np.float32([1, 2]), np.float64([1, 2]), np.inf),
    (np.float32([1, np.nan]), np.float32([1, np.nan]), 0), (np.float32([1, 2]), np.float32([1, np.nan]), np.inf),
    (np.int64([1, 2]), np.int64([1, 3]), np.inf), (np.float32([]), np.float32([]), 0)))
def test_differences_are_parts_of_the_largest_value(got, expected, differ):
    assert op_checks.difference(got, expected) == differ


def test_every_kernel_is_compared_to_the_bit():
    found = [kernel_checks.compare(*case, device) for case in kernel_checks.cases()]
    assert not states(found) and len(found) == len({one.name for one in found})

    class Off(Kernel):
        def __call__(self, x):
            x[...] = x * 1.0000001
    found = kernel_checks.compare(Off(lambda x: None), "float32", [np.ones(5, np.float32)], device)
    assert (found.state, found.text) == (FAIL, "5 elements differ from the reference's, expected equal to the bit")


def test_every_kernel_of_layers_is_compared():
    found = [kernel_checks.compare(*case[:3], device, case[3]) for case in layer_cases.cases()]
    assert not states(found) and len(found) == len({one.name for one in found})
    assert {one.name.partition(".")[0] for one in found} == {"convolution", "normalization", "pooling", "rows",
                                                             "update_groups"}


@pytest.mark.parametrize("factor, state", ((1.00001, OK), (1.001, FAIL)))
def test_sums_may_differ_by_their_rounding(factor, state):
    class Off(Kernel):
        def __call__(self, x):
            return lambda: device.multiply(x, factor, out=x)
    found = kernel_checks.compare(Off(lambda x: None), "float32", [np.ones(5, np.float32)], device, 1e-4)
    assert found.state == state, found


def test_numbers_that_a_device_might_flush_are_among_the_kernels_arguments():
    for kernel, dtype, arguments in kernel_checks.cases():
        smallest = min(abs(one[one != 0]).min() for one in arguments if isinstance(one, np.ndarray) and one.any())
        assert dtype == "float16" or smallest < np.finfo(dtype).tiny, kernel.name


def test_memory_is_copied_and_read(monkeypatch):
    assert not states(memory_checks.checks(device, 1))
    monkeypatch.setattr(DeviceFlat, "spread", lambda self: None)
    assert [name for name, _ in states(memory_checks.checks(device, 1))] == ["flat copies"]


@pytest.mark.slow
def test_speeds_are_measured():
    found = {one.name: one for one in speed_checks.measured(StandInPlace(), speed_checks.Sizes(1, 32, 1, 32, 0, 1))}
    assert found["product"].numbers["cupy_tflops"] > 0 and found["ResNet-18 step"].numbers["ms"] > 0
    assert all(one.numbers.get("gb_per_s", 1) > 0 for one in found.values()) and len(found) == 7


def test_every_part_is_a_module_with_a_check():
    from fleet_mpi.launch.gpu_check import PARTS, part
    assert tuple(MODULES) == PARTS and all(callable(part._check(name)) for name in PARTS)
