"""The kernels for cupy's arrays that a network's layers run on: equal to their references within the rounding of sums.

Without cupy the sources run on the CPU (``cuda_on_the_cpu``); where tests have cupy in the place of the stand-in, as on
an emulation or a GPU, they run there. NVRTC and nvcc compile them for all architectures.
"""

import re
import shutil

import numpy as np
import pytest

from fleet_mpi.kernels import KERNELS
from fleet_mpi.kernels.cuda import (
    activation as cuda_activation,
    casting as cuda_casting,
    convolution as cuda_convolution,
    fused as cuda_fused,
    joining as cuda_joining,
    loss as cuda_loss,
    normalization as cuda_normalization,
    pooling as cuda_pooling,
    softmax as cuda_softmax,
    summing as cuda_summing,
    unscaling as cuda_unscaling,
    update as cuda_update,
    update_groups,
    workspace,
)
from fleet_mpi.kernels.cuda.compiling import complete
from fleet_mpi.kernels.reference import unscaling, update
from fleet_mpi.testing import device
from tests.unit.kernels import (
    cuda_on_the_cpu,
    test_activation,
    test_convolution,
    test_cuda_sources,
    test_fused,
    test_loss,
    test_normalization,
    test_pooling,
    test_softmax,
    test_summing,
)

IS_CUPY = device.__name__ == "cupy"
# By argument tuples: the module with the version, and the one with the cases.
FAMILIES = {"activation": (cuda_activation, test_activation), "fused": (cuda_fused, test_fused),
            "loss": (cuda_loss, test_loss), "softmax": (cuda_softmax, test_softmax),
            "summing": (cuda_summing, test_summing)}
SOURCES = {"activation": cuda_activation, "casting": cuda_casting, "convolution": cuda_convolution, "fused": cuda_fused,
           "joining": cuda_joining, "loss": cuda_loss, "normalization": cuda_normalization, "pooling": cuda_pooling,
           "softmax": cuda_softmax, "summing": cuda_summing, "update_groups": update_groups}
# Exponentials and logarithms are made of fused products, in CUDA's library.
INEXACT = {"activation", "loss", "softmax"}
# What AMP computes in.
HALVES = dict.fromkeys(("activation", "casting", "convolution", "fused", "normalization", "pooling", "summing"),
                       ("float16",))


@pytest.fixture(scope="module", autouse=True)
def compiler(tmp_path_factory):
    """Runs kernels on the CPU; None where cupy runs them."""
    if IS_CUPY:
        yield None
        return
    if not shutil.which("g++"):
        pytest.skip("no g++ to run CUDA sources on the CPU with")
    with pytest.MonkeyPatch.context() as patch:
        yield cuda_on_the_cpu.install(patch, tmp_path_factory.mktemp("cuda"))
    vars(workspace._kept).clear()


@pytest.fixture(autouse=True)
def launched(compiler):
    """The names of the functions launched so far, if they are known."""
    if compiler is not None:
        compiler.launched.clear()
    return None if compiler is None else compiler.launched


def on_device(*arguments):
    return [device.array(one) if isinstance(one, np.ndarray) else one for one in arguments]


def close_to(dtype):
    return {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-10}


def cases():
    for family, (module, tests) in FAMILIES.items():
        for name, makes in tests.KERNEL_CASES.items():
            if hasattr(module, name):
                for number, make in enumerate(makes):
                    yield pytest.param(family, name, make, id=f"{name}-{number}")


def compute_both(family, name, plain, arguments):
    """Run a kernel's reference, and its version for devices."""
    with np.errstate(all="ignore"):
        KERNELS[family, name].reference(*plain)
        getattr(FAMILIES[family][0], name)(*arguments)


@pytest.mark.parametrize("family, name, make", list(cases()))
def test_one_launch_gives_what_the_reference_gives(family, name, make, launched):
    expected = make(np.random.default_rng(5))
    arguments = on_device(*expected)
    compute_both(family, name, expected, arguments)
    for mine, plain in zip(arguments, expected, strict=True):
        if isinstance(plain, np.ndarray):
            np.testing.assert_allclose(device.asnumpy(mine), plain, rtol=2e-5, atol=2e-5)
    assert launched is None or len(launched) == (expected[-1 if family == "summing" else 0].size > 0)


@pytest.mark.parametrize("family, name, make", [one for one in cases() if one.values[0] in HALVES])
def test_halves_are_computed_with_in_float32(family, name, make, launched):
    with np.errstate(over="ignore"):   # what is to be overwritten may be anything
        given = [narrowed(one) for one in make(np.random.default_rng(5))]
    plain = [one.astype(np.float32) if getattr(one, "dtype", None) == np.float16 else one for one in given]
    arguments = on_device(*given)
    compute_both(family, name, plain, arguments)
    for mine, expected in zip(arguments, plain, strict=True):
        if isinstance(expected, np.ndarray):
            assert mine.dtype == np.float16
            np.testing.assert_allclose(device.asnumpy(mine), expected.astype(np.float16), rtol=2e-3, atol=1e-6)
    assert launched is None or len(launched) == (given[-1 if family == "summing" else 0].size > 0)


def narrowed(one):
    """A float array in float16, anything else as it is."""
    return one.astype(np.float16) if isinstance(one, np.ndarray) and one.dtype.kind == "f" else one


@pytest.mark.parametrize("most_bytes", [workspace.MOST_BYTES, 20_000], ids=["whole", "in parts"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", test_convolution.CASES)
def test_convolution_gives_what_the_reference_gives(case, dtype, most_bytes, monkeypatch):
    monkeypatch.setattr(cuda_convolution, "MOST_BYTES", most_bytes)
    x, w, dout, attributes = test_convolution.arrays(case, dtype)
    plain = test_convolution.run_all(x, w, dout, attributes, lambda kernel: kernel.reference)
    mine = on_device(*(np.full_like(like, np.nan) for like in (dout, x, w)))
    x, w, dout = on_device(x, w, dout)
    cuda_convolution.conv_forward(x, w, mine[0], *attributes)()
    cuda_convolution.conv_backward_data(dout, w, mine[1], *attributes)()
    cuda_convolution.conv_backward_weight(x, dout, mine[2], *attributes)()
    for name, made, expected in zip(("out", "dx", "dw"), mine, plain, strict=True):
        np.testing.assert_allclose(device.asnumpy(made), expected, **close_to(dtype), err_msg=name)


@pytest.mark.parametrize("case", ["3x3 same", "1x1"])
def test_a_weight_gradient_of_halves_is_float32_where_that_is_wanted(case):
    x, w, dout, attributes = test_convolution.arrays(case, np.float32)
    x, dout = narrowed(x), narrowed(dout)
    dw, = on_device(np.full(w.shape, np.nan, np.float32))
    cuda_convolution.conv_backward_weight(*on_device(x, dout), dw, *attributes)()
    expected = np.empty_like(w)
    test_convolution.conv_backward_weight.reference(x.astype("f4"), dout.astype("f4"), expected, *attributes)()
    np.testing.assert_allclose(device.asnumpy(dw), expected, rtol=1e-4, atol=1e-4)


def test_a_1x1_convolution_needs_no_columns(launched):
    x, w, dout, attributes = on_device(*test_convolution.arrays("1x1"))
    cuda_convolution.conv_forward(x, w, device.empty(dout.shape, dout.dtype), *attributes)()
    cuda_convolution.conv_backward_data(dout, w, device.empty(x.shape, x.dtype), *attributes)()
    assert launched in (None, [])


def test_an_empty_batch_is_left_to_the_reference():
    _, w, _, attributes = test_convolution.arrays("3x3 same")
    x, dout, dw = on_device(np.empty((0, 4, 9, 8)), np.empty((0, 6, 9, 8)), np.full_like(w, np.nan))
    cuda_convolution.conv_backward_weight(x, dout, dw, *attributes)()
    assert not device.asnumpy(dw).any()


@pytest.mark.parametrize("relu, frozen", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", test_normalization.SHAPES)
def test_batch_norm_gives_what_the_reference_gives(case, dtype, relu, frozen, launched):
    plain = test_normalization.batch_norm(lambda kernel: kernel.reference, case, dtype, relu, frozen)
    mine = test_normalization.batch_norm(_through_the_device, case, dtype, relu, frozen)
    test_normalization.assert_same(mine, plain, dtype)
    assert launched is None or len(launched) == 2


@pytest.mark.parametrize("relu, frozen", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("case", ["NCHW", "NHWC", "many channels"])
def test_batch_norm_of_halves_has_float32_statistics(case, relu, frozen, launched):
    plain = test_normalization.batch_norm(lambda kernel: _on_halves(kernel.reference), case, np.float32, relu, frozen)
    mine = test_normalization.batch_norm(lambda kernel: _on_halves(_through_the_device(kernel)), case, np.float32,
                                         relu, frozen)
    for name in plain:
        np.testing.assert_allclose(mine[name], plain[name], rtol=2e-3, atol=2e-3 if name in ("out", "dx") else 2e-4,
                                   err_msg=name)
    assert launched is None or len(launched) == 2


def _on_halves(bind):
    """A bound kernel on float16 copies of the data, not of lines; what it makes comes back in the data's type."""
    def bind_halves(*arguments):
        held = [narrowed(one) if isinstance(one, np.ndarray) and one.ndim > 1 else one for one in arguments]
        run = bind(*held)

        def run_and_widen():
            run()
            for half, one in zip(held, arguments, strict=True):
                if half is not one:
                    one[...] = half
        return run_and_widen
    return bind_halves


def _through_the_device(kernel):
    """The version of a bound kernel for cupy as a function of host arrays, which get its results."""
    def bind(*arguments):
        there = on_device(*arguments)
        run = kernel.version("cuda")(*there)

        def run_and_fetch():
            run()
            for mine, host in zip(there, arguments, strict=True):
                if isinstance(host, np.ndarray):
                    host[...] = device.asnumpy(mine)
        return run_and_fetch
    return bind


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", test_pooling.CASES)
def test_pooling_gives_what_the_reference_gives(case, dtype, launched):
    given = test_pooling.inputs(case, dtype)
    plain = test_pooling.run_all(lambda kernel: kernel.reference, *given)
    mine = test_pooling.run_all(_through_the_device, *given)
    for name in plain:
        # Of averages the reference adds a place's shares by their offsets into the windows, the kernel by the windows.
        close = {"rtol": 1e-6, "atol": 1e-6} if name == "avg gradient" else {"rtol": 0, "atol": 0}
        np.testing.assert_allclose(mine[name], plain[name], **close, err_msg=name)
    assert launched is None or len(launched) == 4


@pytest.mark.parametrize("case", ["3x3 stride 2 padded", "a last window outside", "global"])
def test_pooling_of_halves_is_rounded_once(case, launched):
    given = test_pooling.inputs(case, np.float32)
    with np.errstate(over="ignore"):   # of an empty window
        plain = test_pooling.run_all(lambda kernel: _on_halves(kernel.reference), *given)
        mine = test_pooling.run_all(lambda kernel: _on_halves(_through_the_device(kernel)), *given)
    for name in plain:
        np.testing.assert_allclose(mine[name], plain[name], rtol=1e-3 * name.startswith("avg"), err_msg=name)
    assert launched is None or len(launched) == 4


def test_a_nan_is_the_largest_of_its_window():
    x = np.array([[[[1.0, np.nan], [7.0, 2.0]]]])
    out, index = on_device(np.zeros((1, 1, 1, 1)), np.zeros((1, 1, 1, 1), np.int32))
    cuda_pooling.max_pool_forward(*on_device(x), out, index, test_pooling.global_windows((2, 2)))()
    assert np.isnan(device.asnumpy(out)).all() and device.asnumpy(index).item() == 1


SIZES = (1, 700, 5000, 3)
GROUPS = {"sgd": lambda lines, rate: (lines[0], lines[1], rate),
          "momentum": lambda lines, rate: (*lines[:3], rate, 0.9, True, 1e-3, 0.5),
          "adam": lambda lines, rate: (*lines[:4], np.full(1, 0.9, rate.dtype), np.full(1, 0.99, rate.dtype), rate,
                                       0.9, 0.99, 1e-8, 0.01)}


def group_of(name, dtype):
    """Argument tuples of an update for parameters of all SIZES."""
    rng = np.random.default_rng(3)
    rate = np.full(1, 0.1, dtype)
    return [GROUPS[name](abs(rng.standard_normal((4, size))).astype(dtype), rate) for size in SIZES]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", GROUPS)
def test_a_group_of_updates_gives_the_bits_of_each(name, dtype, launched):
    calls = group_of(name, dtype)
    there = [tuple(on_device(*call)) for call in calls]
    run = update_groups.grouped(getattr(cuda_update, name), there)
    for _ in range(2):
        run()
        for call in calls:
            getattr(update, name).reference(*call)
    for mine, plain in zip(there, calls, strict=True):
        for got, expected in zip(mine, plain, strict=True):
            if isinstance(expected, np.ndarray):
                np.testing.assert_array_equal(device.asnumpy(got), expected)
    assert launched is None or len(launched) == (4 if name == "adam" else 2)


@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("name", GROUPS)
def test_a_group_under_a_flag_changes_nothing_where_it_is_true(name, skips, launched):
    calls, flag = group_of(name, np.float32), np.array([skips])
    there, (shared,) = [tuple(on_device(*call)) for call in calls], on_device(flag)
    run = update_groups.grouped(getattr(cuda_update, name + "_unless"), [(*call, shared) for call in there])
    run()
    for mine, plain in zip(there, calls, strict=True):
        if not skips:
            getattr(update, name).reference(*plain)
        for got, expected in zip(mine, plain, strict=True):
            if isinstance(expected, np.ndarray):
                np.testing.assert_array_equal(device.asnumpy(got), expected)


def test_updates_under_different_flags_are_no_group():
    lines = [tuple(on_device(*call)) for call in group_of("sgd", np.float32)[:2]]
    flags = on_device(np.array([False]), np.array([False]))
    calls = [(*line, flag) for line, flag in zip(lines, flags)]
    assert update_groups.grouped(cuda_update.sgd_unless, calls) is None


def test_updates_with_other_numbers_types_or_kernels_are_no_group():
    lines = [tuple(on_device(*call)) for call in group_of("momentum", np.float32)]
    halves = [tuple(on_device(*call)) for call in group_of("momentum", np.float64)]
    other = (*lines[1][:4], 0.5, *lines[1][5:])
    assert update_groups.grouped(cuda_update.momentum, [lines[0], other]) is None
    assert update_groups.grouped(cuda_update.momentum, [lines[0], halves[1]]) is None
    assert update_groups.grouped(update.momentum.reference, lines) is None
    assert update_groups.grouped(cuda_update.momentum, lines[:1]) is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_arrays_are_joined_and_parted_by_a_launch_each(axis, dtype, launched):
    sizes = [3, 1, 0, 90]
    shapes = [[7, 5, 11][:axis] + [size] + [7, 5, 11][axis + 1:] for size in sizes]
    pieces = [np.random.default_rng(size).integers(0, 99, shape).astype(dtype) for size, shape in zip(sizes, shapes)]
    plain, there = np.concatenate(pieces, axis), on_device(*pieces)
    whole, = on_device(np.zeros_like(plain))
    cuda_joining.join(whole, there, axis)()
    np.testing.assert_array_equal(device.asnumpy(whole), plain)
    made = on_device(*map(np.zeros_like, pieces))
    made[1] = None
    cuda_joining.part(whole, made, sizes, axis)()
    for got, piece in zip(made[:1] + made[2:], pieces[:1] + pieces[2:]):
        np.testing.assert_array_equal(device.asnumpy(got), piece)
    assert launched in (None, ["join", "part"])


def test_a_single_piece_and_other_types_are_left_to_the_reference(launched):
    pieces, whole = on_device(np.ones(3, bool), np.zeros(2, bool)), device.empty(5, "bool")
    cuda_joining.join(whole, pieces, 0)()
    cuda_joining.part(whole, [None, pieces[0]], [2, 3], 0)()
    assert device.asnumpy(whole).tolist() == [1, 1, 1, 0, 0] and device.asnumpy(pieces[0]).tolist() == [1, 0, 0]
    assert launched in (None, [])


def test_many_arrays_are_cast_by_one_launch_as_one_by_one(launched):
    arrays = [call[0] * 1e4 for call in group_of("sgd", np.float32)] + [np.empty(0, np.float32)]
    there, outs = on_device(*arrays), [device.empty(one.shape, "float16") for one in arrays]
    cuda_casting.cast_all(there, outs)()
    for out, array in zip(outs, arrays, strict=True):
        np.testing.assert_array_equal(device.asnumpy(out), array.astype(np.float16))
    assert launched in (None, ["cast_all"])


def test_other_casts_are_left_to_the_reference(launched):
    (array, whole), out = on_device(np.ones(3), np.arange(3)), device.empty(3, "float16")
    cuda_casting.cast_all([array, whole], [out, array])()
    assert device.asnumpy(out).tolist() == [1, 1, 1] and device.asnumpy(array).tolist() == [0, 1, 2]
    assert launched in (None, [])


@pytest.mark.parametrize("odd", [None, np.inf, np.nan])
def test_all_gradients_are_unscaled_and_zeroed_by_a_launch_each(odd, launched):
    arrays = [call[0] for call in group_of("sgd", np.float32)]
    if odd is not None:
        arrays[2][4500] = odd
    found, scale = np.array([odd is None]), np.array([3.0], np.float32)
    there, (flag, scale_there) = on_device(*arrays), on_device(found, scale)
    unscaling.unscale_all.reference(found, scale, arrays, arrays)()
    cuda_unscaling.unscale_all(flag, scale_there, there, there)()
    assert device.asnumpy(flag).tolist() == found.tolist() == [odd is not None]
    for mine, plain in zip(there, arrays, strict=True):
        np.testing.assert_array_equal(device.asnumpy(mine), plain)
    cuda_unscaling.zero_all_if(flag, there, there)()
    for mine, plain in zip(there, arrays, strict=True):
        np.testing.assert_array_equal(device.asnumpy(mine), plain if odd is None else 0 * np.ones_like(plain))
    assert launched in (None, ["unscale_all", "zero_all_if"])


@pytest.mark.parametrize("family, name", [(family, name) for family in SOURCES for name in dir(SOURCES[family])
                                          if (family, name) in KERNELS])
def test_the_version_for_cupy_takes_the_arguments_of_its_reference(family, name):
    test_cuda_sources.test_the_version_for_cupy_takes_the_arguments_of_its_reference(family, name)


@pytest.mark.parametrize("architecture", test_cuda_sources.ARCHITECTURES)
@pytest.mark.parametrize("family", SOURCES)
def test_nvrtc_compiles_the_source_without_spills(family, architecture):
    for dtype in ("float32", "float64", *HALVES.get(family, ())):
        ptx, said = test_cuda_sources.by_nvrtc(complete(SOURCES[family].SOURCE, dtype), architecture)
        test_cuda_sources.assert_no_spills(said, len(_check(family, ptx)))


@pytest.mark.parametrize("family", ["convolution", "update_groups"])
def test_nvcc_compiles_the_source(family, tmp_path):
    oldest = f"-arch=compute_{test_cuda_sources.ARCHITECTURES[0]}"
    made, _ = test_cuda_sources.by_nvcc(complete(SOURCES[family].SOURCE, "float32"), tmp_path, "-ptx", oldest)
    _check(family, made.read_text())


def _check(family, ptx):
    """The names of the family's kernels, all of which the PTX must have."""
    entries = re.findall(r'extern "C" __global__ void (\w+)', SOURCES[family].SOURCE)
    assert entries and all(f".entry {name}(" in ptx for name in entries)
    if family not in INEXACT:
        test_cuda_sources.assert_exact_ptx(ptx, entries)
    return entries
