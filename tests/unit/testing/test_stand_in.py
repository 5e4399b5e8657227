"""The stand-in for device arrays computes like numpy and never comes to the host by itself."""

import operator

import numpy as np
import pytest

from fleet_mpi.arrays import Rows, is_host, module_of, to_host, to_module
from fleet_mpi.kernels import KERNELS, Kernel
from fleet_mpi.testing import DeviceArray, HostAccess, device, kernel_choices

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


def made():
    """A device array of 2 x 3 floats."""
    return device.asarray(HOST)


def same(array, expected):
    """Whether a device array holds these values, in this dtype and shape."""
    values, expected = device.asnumpy(array), np.asarray(expected)
    return (values.dtype == expected.dtype and values.shape == expected.shape
            and np.array_equal(values, expected))


@pytest.mark.parametrize("use", [
    float, int, bool, complex, list, tuple, iter, operator.index, np.asarray, np.float32, np.sum,
    lambda x: np.array([x, x]),
    lambda x: np.add(x, x),
    lambda x: np.add(x, 1.0, out=np.empty(HOST.shape)),
    lambda x: x.item(), lambda x: x.tolist(), lambda x: 1.0 in x, lambda x: memoryview(x),
    lambda x: HOST[x], lambda x: "%f" % x, lambda x: max(x),
])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_nothing_brings_it_to_the_host(use, shape):
    with pytest.raises(TypeError):
        use(device.ones(shape, device.float32))


def test_an_assignment_to_a_host_array_is_refused():
    target = HOST.copy()
    with pytest.raises(HostAccess):
        target[...] = made()
    with pytest.raises(HostAccess):
        target += made()
    assert np.array_equal(target, HOST)


@pytest.mark.parametrize("foreign", [
    HOST, np.float32(2), np.float64(2), np.int64(2), np.bool_(True), np.array(2.0), [1.0, 2.0, 3.0]],
    ids=lambda value: f"{type(value).__name__}-{np.ndim(value)}")
@pytest.mark.parametrize("use", [
    lambda x, y: x + y, lambda x, y: y + x, lambda x, y: x * y, lambda x, y: y @ x, lambda x, y: x == y,
    lambda x, y: y < x, lambda x, y: device.maximum(x, y), lambda x, y: device.add(y, x),
    lambda x, y: device.add(x, 1.0, out=y), lambda x, y: operator.iadd(x, y),
    lambda x, y: operator.setitem(x, 0, y), lambda x, y: device.where(x > 0, x, y),
    lambda x, y: device.concatenate([x, y]), lambda x, y: x.dot(y), lambda x, y: x.fill(y)])
def test_mixing_with_host_values_is_refused(use, foreign):
    with pytest.raises(TypeError):
        use(made(), foreign)


def test_the_refusal_says_what_to_do():
    with pytest.raises(HostAccess, match=r"add: expected device arrays and Python scalars, got ndarray; "
                                         r"move host values with asarray"):
        made() + HOST
    with pytest.raises(HostAccess, match=r"__float__ of DeviceArray\(float32 \[\]\) would pass through"):
        float(made().sum())


def test_python_scalars_do_not_change_the_dtype():
    assert same(made() * 2.5 + 1, HOST * np.float32(2.5) + np.float32(1))
    assert same(2 - made(), np.float32(2) - HOST)
    assert same(device.asarray(np.int32([1, 2])) + True, np.int32([2, 3]))


@pytest.mark.parametrize("name", "add sub mul truediv pow floordiv mod lt le gt ge eq ne".split())
def test_operators_give_numpys_values(name):
    run, right = getattr(operator, name), HOST[::-1] + 1
    assert same(run(made(), device.asarray(right)), run(HOST, right))
    assert same(run(2.0, made() + 1), run(2.0, HOST + 1))


def test_operators_in_place_keep_the_object_and_its_memory():
    array = made()
    view, before = array[0], array
    array += 1
    array *= array
    assert array is before
    assert same(view, (HOST[0] + 1) ** 2)


def test_reductions_stay_on_the_device_as_arrays_without_axes():
    for total in (made().sum(), device.sum(made()), device.max(made()), device.count_nonzero(made())):
        assert isinstance(total, DeviceArray) and total.shape == ()


@pytest.mark.parametrize("key", [
    0, -1, (0, 1), slice(1, None), (slice(None), slice(None, None, -1)), None, Ellipsis, (Ellipsis, 0),
    (0, None, slice(1, 3)), (np.int64(1), slice(np.int64(0), np.int64(2)))], ids=str)
def test_basic_indexing_is_a_view(key):
    array, expected = made(), HOST.copy()
    view = array[key]
    assert same(view, expected[key])
    view += 10
    expected[key] += 10
    assert same(array, expected)


@pytest.mark.parametrize("key", [
    np.array([1, 0, 1]), (slice(None), np.array([2, 0])), (np.array([0, 1]), np.array([2, 0])),
    HOST > 2, (np.array([True, False]), slice(1, None)), (np.array([[1], [0]]), 0)], ids=str)
def test_indexing_with_device_arrays_selects_and_assigns(key):
    parts = key if isinstance(key, tuple) else (key,)
    on_device = tuple(device.asarray(part) if isinstance(part, np.ndarray) else part for part in parts)
    array, expected = made(), HOST.copy()
    assert same(array[on_device], expected[key])
    array[on_device] = -1
    expected[key] = -1
    assert same(array, expected)


@pytest.mark.parametrize("key", [np.array([0]), [0, 1], HOST > 2, (slice(None), np.array([0])), 1.5])
def test_indexing_with_host_arrays_is_refused(key):
    with pytest.raises(TypeError):
        made()[key]


def test_moving_to_and_from_the_device_copies():
    host = HOST.copy()
    array = device.asarray(host)
    host[:] = 0
    back = device.asnumpy(array)
    back[:] = 1
    assert same(array, HOST)
    assert device.asarray(array) is array
    assert not device.shares_memory(device.array(array), array)


def test_views_share_memory():
    array = made()
    for view in (array.T, array.reshape(3, 2), array.ravel(), device.transpose(array), array[:, 1:],
                 device.moveaxis(array, 0, 1), device.broadcast_to(array, (4, 2, 3)), array.view(device.int32),
                 device.lib.stride_tricks.sliding_window_view(array, 2, axis=1)):
        assert device.shares_memory(view, array)


@pytest.mark.parametrize("use", [
    lambda xp, x: xp.matmul(x, x.T), lambda xp, x: xp.dot(x, x.T), lambda xp, x: x @ x.T,
    lambda xp, x: xp.einsum("ij,kj->ik", x, x), lambda xp, x: xp.tensordot(x, x, axes=([1], [1])),
    lambda xp, x: xp.concatenate([x, x], axis=1), lambda xp, x: xp.stack((x, x)),
    lambda xp, x: xp.take(x, xp.asarray([1, 0]), axis=0),
    lambda xp, x: xp.take_along_axis(x, xp.argsort(-x, axis=1), axis=1),
    lambda xp, x: xp.where(x > 2, x, 0.0), lambda xp, x: xp.clip(x, 1.0, 3.0), lambda xp, x: x.clip(1, 3),
    lambda xp, x: xp.pad(x, ((1, 0), (0, 2)), constant_values=7.0), lambda xp, x: xp.cumsum(x, axis=1),
    lambda xp, x: xp.repeat(x, [1, 2], axis=0), lambda xp, x: xp.tile(x, (2, 1)),
    lambda xp, x: xp.split(x, [1, 2], axis=1)[1], lambda xp, x: xp.expand_dims(x, (0, 2)),
    lambda xp, x: x.mean(axis=0, keepdims=True), lambda xp, x: xp.var(x, axis=1),
    lambda xp, x: xp.max(x, axis=(0, 1)), lambda xp, x: x.argmax(axis=1), lambda xp, x: xp.any(x > 4),
    lambda xp, x: xp.unique(x % 2, return_inverse=True)[0], lambda xp, x: xp.nonzero(x)[1],
    lambda xp, x: xp.searchsorted(x[0], x[1]), lambda xp, x: xp.bincount(xp.asarray([0, 2, 2]), minlength=4),
    lambda xp, x: x.astype(xp.float64), lambda xp, x: xp.full((2, np.int64(2)), 3.0, xp.float32),
    lambda xp, x: xp.arange(0, 6, 2), lambda xp, x: xp.zeros_like(x), lambda xp, x: xp.eye(3, dtype=x.dtype),
    lambda xp, x: xp.linalg.norm(x), lambda xp, x: xp.divmod(x, 2.0)[1], lambda xp, x: xp.tril(x),
    lambda xp, x: xp.asarray([[1, 2], [3, 4]], xp.int64), lambda xp, x: -abs(x), lambda xp, x: xp.allclose(x, x),
])
def test_functions_give_numpys_values(use):
    assert same(use(device, made()), use(np, HOST))


@pytest.mark.parametrize("name", "add multiply maximum power".split())
def test_elementwise_functions_write_into_out(name):
    out = device.empty((2, 3), device.float32)
    assert getattr(device, name)(made(), 2.0, out=out) is out
    assert same(out, getattr(np, name)(HOST, np.float32(2)))
    assert getattr(device, name)(made(), 3.0, out) is out
    assert same(out, getattr(np, name)(HOST, np.float32(3)))


@pytest.mark.parametrize("name, args, axis", [
    ("sum", (), 0), ("mean", (), 1), ("max", (), 0), ("cumsum", (), 1), ("take", ([1, 0],), 1)])
def test_other_functions_write_into_out_too(name, args, axis):
    expected = getattr(np, name)(HOST, *args, axis=axis)
    out = device.empty(expected.shape, expected.dtype)
    args = tuple(device.asarray(arg) for arg in args)
    assert getattr(device, name)(made(), *args, axis=axis, out=out) is out
    assert same(out, expected)
    product = device.empty((2, 2), device.float32)
    assert device.dot(made(), made().T, out=product) is product
    assert device.matmul(made(), made().T, out=product) is product
    assert same(product, HOST @ HOST.T)


def test_add_at_sums_repeated_rows():
    target = device.zeros((3, 2), device.float32)
    device.add.at(target, device.asarray([2, 0, 2]), device.ones((3, 2), device.float32))
    assert same(target, np.float32([[1, 1], [0, 0], [2, 2]]))


def test_add_at_refuses_what_cupy_cannot_add():
    with pytest.raises(AttributeError, match="add.at works on int32, .*, not on int64"):
        device.add.at(device.zeros(2, device.int64), device.asarray([0]), 1)
    with pytest.raises(AttributeError, match="no multiply.at"):
        device.multiply.at(device.zeros(2), device.asarray([0]), 1.0)
    with pytest.raises(HostAccess):
        device.add.at(device.zeros(2), np.array([0]), 1.0)


@pytest.mark.parametrize("use, says", [
    (lambda: device.random, "no 'random'"),
    (lambda: device.errstate, "no 'errstate'"),
    (lambda: device.maximun, "did you mean 'maximum'"),
    (lambda: device.add.reduce, "no 'reduce'"),
    (lambda: made().ctypes, "no 'ctypes'"),
    (lambda: made().setflags(write=False), "no 'setflags'"),
    (lambda: device.einsum("ij->j", made(), out=made()), "einsum takes no argument 'out'"),
    (lambda: device.take(made(), device.asarray([0]), mode="clip"), "take takes no argument 'mode'"),
    (lambda: device.sum(made(), where=made() > 0), "sum takes no argument 'where'"),
    (lambda: device.max(made(), initial=0.0), "max takes no argument 'initial'"),
])
def test_what_cupy_lacks_is_named(use, says):
    with pytest.raises(AttributeError, match=says):
        use()


@pytest.mark.parametrize("use", [
    lambda n: device.zeros(n), lambda n: device.arange(n), lambda n: device.repeat(made(), n),
    lambda n: device.zeros((2, n)), lambda n: made().reshape(n, 2), lambda n: device.split(made(), n),
    lambda n: made().sum(axis=n)])
def test_a_device_array_is_no_shape_and_no_count(use):
    with pytest.raises(HostAccess):
        use(device.asarray(3))


def test_the_gate_for_arrays_knows_the_stand_in():
    array = made()
    assert module_of(array) is device
    assert not is_host(array)
    assert np.array_equal(to_host(array), HOST)
    assert isinstance(to_module(HOST, device), DeviceArray)
    assert to_module(array, device) is array
    rows = Rows(device.asarray([1, 1]), device.ones((2, 2), device.float32), 3)
    assert np.array_equal(rows.to_dense(), np.float32([[0, 0], [2, 2], [0, 0]]))


@pytest.fixture
def doubled(monkeypatch):
    """A kernel with a reference and, for host arrays, a version that says it is numba's."""
    def doubled_of(x):
        return x + x

    made_kernel = Kernel(doubled_of)
    monkeypatch.setitem(KERNELS, ("test", "doubled_of"), made_kernel)
    monkeypatch.setattr(made_kernel, "version", {"numba": lambda x: 2 * x}.get)
    return made_kernel


def test_kernel_choices_lists_every_choice_even_of_kernels_used_before(doubled):
    doubled(HOST)
    doubled(made())
    with kernel_choices() as choices:
        assert same(doubled(made()), HOST * 2)
        assert np.array_equal(doubled(HOST), HOST * 2)
        doubled.pick(made())
    doubled(HOST)
    assert choices == [("doubled_of", "reference"), ("doubled_of", "numba"), ("doubled_of", "reference")]


def test_kernels_remember_their_choice_again_after_the_block(doubled, monkeypatch):
    with kernel_choices():
        doubled(HOST)
    doubled(HOST)
    monkeypatch.setattr(doubled, "version", None)
    assert np.array_equal(doubled(HOST), HOST * 2)
