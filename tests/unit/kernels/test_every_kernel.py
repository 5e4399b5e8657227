"""Every kernel in KERNELS: its numba version takes the same arguments and gives the same result, and so does its
version for cupy; its reference runs on device arrays.

A family's test module may give ``KERNEL_CASES``: kernel name -> functions that make one argument tuple from a
random generator; and ``KERNEL_TOLERANCES``: kernel name -> relative tolerance, where bits may differ.
What is left in an argument called ``scratch`` does not count.

On the stand-in a reference gives numpy's bits. On real cupy (tests/gpu_emulation/plugin.py) bits are promised of whole
numbers, and of the families in PROMISE_BITS; elsewhere exp, log and sums are rounded as cupy does. The versions for
cupy run there too. Without cupy test_cuda_sources.py and test_cuda_layers.py run them on the CPU.
"""

import copy
import importlib
import importlib.util
import inspect
import pathlib
import pkgutil

import numpy as np
import pytest

import fleet_mpi.kernels as kernels
from fleet_mpi.arrays import to_host
from fleet_mpi.kernels import reference
from fleet_mpi.testing import DeviceArray, device, stand_in

HERE = pathlib.Path(__file__).parent
IS_STAND_IN = device is stand_in.device
PROMISE_BITS = {"rank_sums", "rows", "unscaling", "update"}  # on devices (README)
BITS_BY_CUDA = PROMISE_BITS | {"sequence"}  # whose CUDA sources compute element by element as their references do
ROUNDING = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-11}  # of cupy's functions, beside numpy's


def families():
    return sorted(module.name for module in pkgutil.iter_modules(reference.__path__))


def cases_of(family):
    """(kernel name, make arguments, tolerance) for all cases that the family's test module gives."""
    path = HERE / f"test_{family}.py"
    if not path.exists():
        return []
    spec = importlib.util.spec_from_file_location(f"cases_of_{family}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tolerances = getattr(module, "KERNEL_TOLERANCES", {})
    cases = getattr(module, "KERNEL_CASES", {})
    return [(name, make, tolerances.get(name)) for name, makes in cases.items() for make in makes]


def all_cases():
    return [pytest.param(family, name, make, tolerance, id=f"{family}-{name}-{number}")
            for family in families() for number, (name, make, tolerance) in enumerate(cases_of(family))]


def all_kernels():
    for family in families():
        importlib.import_module(f"fleet_mpi.kernels.reference.{family}")
    return sorted(kernels.KERNELS)


def has_version(prefix, family, name):
    return kernels.KERNELS[family, name].version(prefix) is not None


def assert_same(got, expected, tolerance, what):
    if isinstance(expected, np.ndarray):
        assert got.dtype == expected.dtype and got.shape == expected.shape, what
        if tolerance is None:
            np.testing.assert_array_equal(got, expected, err_msg=what)
        else:
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=what)
    elif isinstance(expected, (tuple, list)):
        for index, (one, other) in enumerate(zip(got, expected, strict=True)):
            assert_same(one, other, tolerance, f"{what}[{index}]")
    else:
        assert got == expected, what


def assert_same_arguments(kernel, got, expected, tolerance):
    names = inspect.signature(kernel.reference).parameters
    for argument, one, other in zip(names, got, expected, strict=True):
        if argument != "scratch":
            assert_same(one, other, tolerance, f"{argument} of {kernel.name}")


def assert_same_on_device(has_bits, got, expected, what):
    """As ``assert_same``, but for the rounding of another library's functions where no bits are promised."""
    if has_bits or not isinstance(expected, (np.ndarray, tuple, list)):
        assert_same(got, expected, None, what)
    elif isinstance(expected, np.ndarray):
        assert_same(got, expected, ROUNDING.get(expected.dtype.name), what)
    else:
        for index, (one, other) in enumerate(zip(got, expected, strict=True)):
            assert_same_on_device(has_bits, one, other, f"{what}[{index}]")


def on_host(value):
    return to_host(value) if isinstance(value, DeviceArray) else value


@pytest.mark.parametrize("family, name", [one for one in all_kernels() if has_version("numba", *one)])
def test_the_numba_version_takes_the_arguments_of_its_reference(family, name):
    kernel = kernels.KERNELS[family, name]
    fast = kernel.version("numba")
    asked = inspect.signature(kernel.reference).parameters
    given = inspect.signature(getattr(fast, "py_func", fast)).parameters
    assert list(given) == list(asked)


@pytest.mark.parametrize("family, name, make, tolerance",
                         [one for one in all_cases() if has_version("numba", *one.values[:2])])
def test_the_numba_version_agrees_with_its_reference(family, name, make, tolerance):
    kernel = kernels.KERNELS[family, name]
    fast = kernel.version("numba")
    expected_arguments = make(np.random.default_rng(5))
    arguments = copy.deepcopy(expected_arguments)
    expected = kernel.reference(*expected_arguments)
    got = fast(*arguments)
    assert_same(got, expected, tolerance, f"what {name} returns")
    assert_same_arguments(kernel, arguments, expected_arguments, tolerance)


@pytest.mark.parametrize("family, name, make, tolerance", all_cases())
def test_the_reference_gives_the_same_on_device_arrays(family, name, make, tolerance):
    kernel = kernels.KERNELS[family, name]
    has_bits = IS_STAND_IN or family in PROMISE_BITS and tolerance is None
    assert_agrees_on_device(kernel, kernel.reference, make, has_bits)


@pytest.mark.skipif(IS_STAND_IN, reason="needs cupy: test_cuda_sources and test_cuda_layers run the sources on the CPU")
@pytest.mark.parametrize("family, name, make, tolerance",
                         [one for one in all_cases() if has_version("cuda", *one.values[:2])])
def test_the_cuda_version_agrees_with_its_reference_on_a_device(family, name, make, tolerance):
    kernel = kernels.KERNELS[family, name]
    assert_agrees_on_device(kernel, kernel.version("cuda"), make, family in BITS_BY_CUDA and tolerance is None)


def assert_agrees_on_device(kernel, version, make, has_bits):
    """A version gives on device arrays what the reference gives on the host's."""
    expected_arguments = make(np.random.default_rng(5))
    arguments = [device.array(one) if isinstance(one, np.ndarray) else one for one in expected_arguments]
    expected = kernel.reference(*expected_arguments)
    assert_same_on_device(has_bits, on_host(version(*arguments)), expected, f"what {kernel.name} returns")
    for argument, one, other in zip(inspect.signature(kernel.reference).parameters, arguments, expected_arguments,
                                    strict=True):
        if argument != "scratch":
            assert_same_on_device(has_bits, on_host(one), other, f"{argument} of {kernel.name}")
