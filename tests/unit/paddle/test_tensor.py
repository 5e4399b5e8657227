"""The functions of ``paddle`` with the argument lists of 2.x compute what numpy does."""

import numpy as np
import pytest

from fleet_mpi import paddle
from fleet_mpi.errors import NotBuilt

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2, (2, 3, 4)).astype("float32")
Y = RNG.uniform(0.5, 2, (2, 3, 4)).astype("float32")
IDS = np.array([1, 0, 1])

# name: (layer of the variables x and y, the same with numpy)
CASES = {
    "add": (lambda x, y: paddle.add(x, y), lambda x, y: x + y),
    "subtract": (lambda x, y: paddle.subtract(x, y), lambda x, y: x - y),
    "multiply": (lambda x, y: paddle.multiply(x, y), lambda x, y: x * y),
    "divide": (lambda x, y: paddle.divide(x, y), lambda x, y: x / y),
    "floor_divide": (lambda x, y: paddle.floor_divide(paddle.cast(x * 9, "int64"), paddle.cast(y * 3, "int64")),
                     lambda x, y: (x * 9).astype(int) // (y * 3).astype(int)),
    "mod": (lambda x, y: paddle.mod(x, y), lambda x, y: x % y),
    "maximum": (lambda x, y: paddle.maximum(x, y), np.maximum),
    "minimum": (lambda x, y: paddle.minimum(x, y), np.minimum),
    "pow": (lambda x, y: paddle.pow(x, 3), lambda x, y: x ** 3),
    "pow of variables": (lambda x, y: paddle.pow(x, y), lambda x, y: x ** y),
    "mean": (lambda x, y: paddle.mean(x), lambda x, y: x.mean().reshape(1)),
    "mean of an axis": (lambda x, y: paddle.mean(x, axis=1), lambda x, y: x.mean(1)),
    "mean of axes": (lambda x, y: paddle.mean(x, axis=[0, 2], keepdim=True),
                     lambda x, y: x.mean((0, 2), keepdims=True)),
    "sum": (lambda x, y: paddle.sum(x), lambda x, y: x.sum().reshape(1)),
    "sum in float64": (lambda x, y: paddle.sum(x, 2, "float64", True),
                       lambda x, y: x.astype("float64").sum(2, keepdims=True)),
    "max": (lambda x, y: paddle.max(x, 1, keepdim=True), lambda x, y: x.max(1, keepdims=True)),
    "min": (lambda x, y: paddle.min(x, -1), lambda x, y: x.min(-1)),
    "prod": (lambda x, y: paddle.prod(x, 0), lambda x, y: x.prod(0)),
    "clip": (lambda x, y: paddle.clip(x, 0.8, 1.2), lambda x, y: x.clip(0.8, 1.2)),
    "clip from below": (lambda x, y: paddle.clip(x, min=1.0), lambda x, y: x.clip(1.0)),
    "cumsum": (lambda x, y: paddle.cumsum(x, 1), lambda x, y: x.cumsum(1)),
    "cumsum of all": (lambda x, y: paddle.cumsum(x), lambda x, y: x.cumsum()),
    "add_n": (lambda x, y: paddle.add_n([x, y, x]), lambda x, y: x + y + x),
    "sqrt": (lambda x, y: paddle.sqrt(x), lambda x, y: np.sqrt(x)),
    "isfinite": (lambda x, y: paddle.isfinite(x), lambda x, y: np.isfinite(x)),
    "cast": (lambda x, y: paddle.cast(x, "int64"), lambda x, y: x.astype(int)),
    "concat": (lambda x, y: paddle.concat([x, y], axis=1), lambda x, y: np.concatenate([x, y], 1)),
    "stack": (lambda x, y: paddle.stack([x, y], axis=1), lambda x, y: np.stack([x, y], 1)),
    "split": (lambda x, y: paddle.split(x, 3, axis=1)[1], lambda x, y: x[:, 1:2]),
    "chunk": (lambda x, y: paddle.chunk(x, 2, axis=2)[1], lambda x, y: x[:, :, 2:]),
    "unstack": (lambda x, y: paddle.unstack(x, 1)[2], lambda x, y: x[:, 2]),
    "reshape": (lambda x, y: paddle.reshape(x, [0, -1]), lambda x, y: x.reshape(2, -1)),
    "flatten": (lambda x, y: paddle.flatten(x, 1, 2), lambda x, y: x.reshape(2, -1)),
    "transpose": (lambda x, y: paddle.transpose(x, [2, 0, 1]), lambda x, y: x.transpose(2, 0, 1)),
    "unsqueeze": (lambda x, y: paddle.unsqueeze(x, 1), lambda x, y: x[:, None]),
    "squeeze": (lambda x, y: paddle.squeeze(paddle.unsqueeze(x, [0, 2])), lambda x, y: x),
    "squeeze of an axis": (lambda x, y: paddle.squeeze(paddle.unsqueeze(x, 2), axis=2), lambda x, y: x),
    "tile": (lambda x, y: paddle.tile(x, [2, 1, 1]), lambda x, y: np.tile(x, (2, 1, 1))),
    "expand": (lambda x, y: paddle.expand(paddle.unsqueeze(x, 0), [3, 2, 3, 4]), lambda x, y: np.stack([x] * 3)),
    "flip": (lambda x, y: paddle.flip(x, [1]), lambda x, y: x[:, ::-1]),
    "slice": (lambda x, y: paddle.slice(x, [1], [1], [3]), lambda x, y: x[:, 1:3]),
    "matmul": (lambda x, y: paddle.matmul(x, y, transpose_y=True), lambda x, y: x @ y.transpose(0, 2, 1)),
    "bmm": (lambda x, y: paddle.bmm(x, paddle.transpose(y, [0, 2, 1])), lambda x, y: x @ y.transpose(0, 2, 1)),
    "norm": (lambda x, y: paddle.norm(x), lambda x, y: np.sqrt((x ** 2).sum()).reshape(1)),
    "norm of two axes": (lambda x, y: paddle.norm(x, axis=[0, 2]), lambda x, y: np.sqrt((x ** 2).sum((0, 2)))),
    "third norm of two axes": (lambda x, y: paddle.norm(x, 3, [0, 1], True),
                               lambda x, y: (x ** 3).sum((0, 1), keepdims=True) ** (1 / 3)),
    "largest of two axes": (lambda x, y: paddle.norm(-x, np.inf, [1, 2]), lambda x, y: x.max((1, 2))),
    "number in two axes": (lambda x, y: paddle.norm(x, 0, [1, 2]), lambda x, y: np.full(2, 12.0, "float32")),
    "reverse": (lambda x, y: paddle.reverse(x, [0, 2]), lambda x, y: x[::-1, :, ::-1]),
    "gather_nd": (lambda x, y: paddle.gather_nd(x=x, index=paddle.assign(np.array([[1, 2], [0, 0]]))),
                  lambda x, y: x[[1, 0], [2, 0]]),
    "strided_slice": (lambda x, y: paddle.strided_slice(x=x, axes=[2], starts=[0], ends=[4], strides=[2]),
                      lambda x, y: x[:, :, ::2]),
    "linspace": (lambda x, y: paddle.linspace(0, 1, 5), lambda x, y: np.linspace(0, 1, 5, dtype="float32")),
    "empty": (lambda x, y: paddle.shape(paddle.empty([2, 3])), lambda x, y: np.array([2, 3], "int32")),
    "empty_like": (lambda x, y: paddle.shape(paddle.empty_like(x)), lambda x, y: np.array([2, 3, 4], "int32")),
    "conj": (lambda x, y: paddle.conj(x), lambda x, y: x),
    "tanh_": (lambda x, y: paddle.tanh_(x), lambda x, y: np.tanh(x)),
    "reshape_": (lambda x, y: paddle.reshape_(x, [6, 4]), lambda x, y: x.reshape(6, 4)),
    "clamp of 1.8": (lambda x, y: paddle.clamp(x, 0.8, 1.2), lambda x, y: x.clip(0.8, 1.2)),
    "elementwise_sum of 1.8": (lambda x, y: paddle.elementwise_sum([x, y]), lambda x, y: x + y),
    "div and reduce_sum of 1.8": (lambda x, y: paddle.reduce_sum(paddle.div(x, y), dim=1), lambda x, y: (x / y).sum(1)),
    "norm of an axis": (lambda x, y: paddle.norm(x, p=1, axis=2), lambda x, y: np.abs(x).sum(2)),
    "equal": (lambda x, y: paddle.equal(x, y), lambda x, y: x == y),
    "not_equal": (lambda x, y: paddle.not_equal(x, y), lambda x, y: x != y),
    "less_than": (lambda x, y: paddle.less_than(x, y), lambda x, y: x < y),
    "less_equal": (lambda x, y: paddle.less_equal(x, y), lambda x, y: x <= y),
    "greater_than": (lambda x, y: paddle.greater_than(x, y), lambda x, y: x > y),
    "greater_equal": (lambda x, y: paddle.greater_equal(x, y), lambda x, y: x >= y),
    "all": (lambda x, y: paddle.all(paddle.less_than(x, y), axis=2), lambda x, y: (x < y).all(2)),
    "any": (lambda x, y: paddle.any(paddle.less_than(x, y), axis=2), lambda x, y: (x < y).any(2)),
    "argmax": (lambda x, y: paddle.argmax(x, axis=1), lambda x, y: x.argmax(1)),
    "argmax of all": (lambda x, y: paddle.argmax(x), lambda x, y: x.argmax().reshape(1)),
    "argmin kept": (lambda x, y: paddle.argmin(x, 1, True, "int32"), lambda x, y: x.argmin(1)[:, None].astype("int32")),
    "sort": (lambda x, y: paddle.sort(x, axis=1), lambda x, y: np.sort(x, 1)),
    "argsort": (lambda x, y: paddle.argsort(x, axis=1, descending=True), lambda x, y: np.argsort(-x, 1)),
    "topk": (lambda x, y: paddle.topk(x, 2, axis=1)[0], lambda x, y: -np.sort(-x, 1)[:, :2]),
    "where": (lambda x, y: paddle.where(paddle.less_than(x, y), x, y), lambda x, y: np.where(x < y, x, y)),
    "full": (lambda x, y: paddle.full([2, 3], 7), lambda x, y: np.full((2, 3), 7, "float32")),
    "full of a shape": (lambda x, y: paddle.full(paddle.shape(x), 7, "int64"), lambda x, y: np.full(x.shape, 7)),
    "zeros": (lambda x, y: paddle.zeros([2]), lambda x, y: np.zeros(2, "float32")),
    "ones": (lambda x, y: paddle.ones([2], "int32"), lambda x, y: np.ones(2, "int32")),
    "full_like": (lambda x, y: paddle.full_like(x, 3), lambda x, y: np.full_like(x, 3)),
    "zeros_like": (lambda x, y: paddle.zeros_like(x, "int64"), lambda x, y: np.zeros(x.shape, int)),
    "ones_like": (lambda x, y: paddle.ones_like(x), lambda x, y: np.ones_like(x)),
    "arange": (lambda x, y: paddle.arange(5), lambda x, y: np.arange(5)),
    "arange by steps": (lambda x, y: paddle.arange(1.0, 2.0, 0.25), lambda x, y: np.arange(1, 2, 0.25, "float32")),
    "eye": (lambda x, y: paddle.eye(2, 3), lambda x, y: np.eye(2, 3, dtype="float32")),
    "assign": (lambda x, y: paddle.assign(np.array([[1, 2]])), lambda x, y: np.array([[1, 2]])),
    "shape": (lambda x, y: paddle.shape(x), lambda x, y: np.array(x.shape, "int32")),
    "numel": (lambda x, y: paddle.numel(x), lambda x, y: np.array([x.size])),
    "rank": (lambda x, y: paddle.rank(x), lambda x, y: np.array([x.ndim], "int32")),
    "log1p": (lambda x, y: paddle.log1p(x), lambda x, y: np.log1p(x)),
    "einsum": (lambda x, y: paddle.einsum("bij,bkj->bik", x, y), lambda x, y: np.einsum("bij,bkj->bik", x, y)),
    "addmm": (lambda x, y: paddle.addmm(x[0], x[0][:, :3], y[0], beta=2.0, alpha=0.5),
              lambda x, y: 2 * x[0] + 0.5 * x[0][:, :3] @ y[0]),
    "tril": (lambda x, y: paddle.tril(x, 1), lambda x, y: np.tril(x, 1)),
    "triu": (lambda x, y: paddle.triu(x), lambda x, y: np.triu(x)),
    "unique": (lambda x, y: paddle.unique(paddle.assign(IDS), return_counts=True)[1], lambda x, y: np.array([1, 2])),
    "masked_select": (lambda x, y: paddle.masked_select(x, paddle.less_than(x, y)), lambda x, y: x[x < y]),
    "multinomial": (lambda x, y: paddle.multinomial(paddle.eye(3)), lambda x, y: np.array([[0], [1], [2]])),
    "index_select": (lambda x, y: paddle.index_select(x, paddle.assign(IDS), axis=2), lambda x, y: x[:, :, IDS]),
    "nonzero": (lambda x, y: paddle.nonzero(paddle.assign(IDS)), lambda x, y: np.array([[0], [2]])),
    "nonzero as a tuple": (lambda x, y: paddle.nonzero(paddle.less_than(x, y), as_tuple=True)[1],
                           lambda x, y: np.nonzero(x < y)[1][:, None]),
    "broadcast_to": (lambda x, y: paddle.broadcast_to(paddle.ones([3, 1]), [3, 4]),
                     lambda x, y: np.ones((3, 4), "float32")),
    "unbind": (lambda x, y: paddle.unbind(x, 1)[2], lambda x, y: x[:, 2]),
    "t": (lambda x, y: paddle.t(x[0]), lambda x, y: x[0].T),
    "roll of all": (lambda x, y: paddle.roll(paddle.reshape(x, [2, 3, 4]), 5), lambda x, y: np.roll(x, 5)),
    "crop": (lambda x, y: paddle.crop(x, [2, 1, 2], [0, 1, 2]), lambda x, y: x[:2, 1:2, 2:]),
    "meshgrid": (lambda x, y: paddle.meshgrid(paddle.arange(2), paddle.arange(3))[1],
                 lambda x, y: np.array([[0, 1, 2]] * 2)),
    "scatter_nd": (lambda x, y: paddle.scatter_nd(paddle.assign(np.array([[1], [1]])), paddle.ones([2]), [3]),
                   lambda x, y: np.array([0, 2, 0], "float32")),
    "allclose": (lambda x, y: paddle.allclose(x, x), lambda x, y: np.array([True])),
    "_multiply_with_axis": (lambda x, y: paddle.tensor.math._multiply_with_axis(x, paddle.ones([3]), axis=1),
                            lambda x, y: x),
    "fill_constant": (lambda x, y: paddle.tensor.fill_constant(shape=[2], dtype="int64", value=3),
                      lambda x, y: np.array([3, 3])),
    "a dtype by name": (lambda x, y: paddle.cast(x, paddle.int64), lambda x, y: x.astype("int64")),
    "gather": (lambda x, y: paddle.gather(x, paddle.assign(IDS), axis=1), lambda x, y: x[:, IDS]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_computes_what_numpy_does(name):
    layer, definition = CASES[name]
    out = layer(*(paddle.static.data(one, [None, 3, 4]) for one in "xy"))
    found, = paddle.static.Executor().run(feed={"x": X, "y": Y}, fetch_list=[out])
    expected = definition(X, Y)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_rows_are_replaced_or_added_to():
    x = paddle.static.data("x", [None, 2])
    outs = [paddle.scatter(x, paddle.assign(np.array([1, 1])), paddle.ones([2, 2]), overwrite=False),
            paddle.scatter(x, paddle.assign(np.array([2, 1])), paddle.ones([2, 2]))]
    added, replaced = paddle.static.Executor().run(feed={"x": np.zeros((3, 2), "float32")}, fetch_list=outs)
    assert added.tolist() == [[0, 0], [2, 2], [0, 0]] and replaced.tolist() == [[0, 0], [1, 1], [1, 1]]


def test_a_variable_is_incremented_in_place():
    counter = paddle.static.create_global_var([1], 2.0, "float32", persistable=True, name="counter")
    paddle.increment(counter, 3.0)
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    assert exe.run(fetch_list=[counter])[0][0] == 5


@pytest.mark.parametrize("draw, low, high", (
    (lambda: paddle.rand([1000]), 0, 1), (lambda: paddle.uniform([1000], min=2.0, max=3.0), 2, 3),
    (lambda: paddle.randint(5, 9, [1000]), 5, 8), (lambda: paddle.randperm(1000), 0, 999)))
def test_drawn_numbers_keep_their_bounds(draw, low, high):
    found, = paddle.static.Executor().run(fetch_list=[draw()])
    assert found.shape == (1000,) and found.min() >= low and found.max() <= high and len(np.unique(found)) > 3


def test_normal_numbers_have_their_spread():
    outs = [paddle.randn([4000]), paddle.normal(5.0, 2.0, [4000])]
    plain, moved = paddle.static.Executor().run(fetch_list=outs)
    assert abs(plain.mean()) < 0.1 and abs(plain.std() - 1) < 0.1
    assert abs(moved.mean() - 5) < 0.2 and abs(moved.std() - 2) < 0.2


def test_the_default_element_type_is_float32():
    assert paddle.get_default_dtype() == paddle.float32 == "float32" and paddle.bool == "bool"
    paddle.set_default_dtype("float32")
    with pytest.raises(NotBuilt, match="only float32 is built"):
        paddle.set_default_dtype("float64")


def test_eager_tensors_are_refused():
    with pytest.raises(NotBuilt, match="there is no eager mode"):
        paddle.to_tensor([1.0])


def test_draws_around_variables():
    center, width = paddle.full([2000, 2], 3.0), paddle.full([2000, 2], 0.5)
    drawn = paddle.static.Executor().run(fetch_list=[
        paddle.normal(center, width), paddle.normal(center), paddle.normal(1.0, width),
        paddle.normal(2.0, 0.1, [2000, 2]),
        paddle.standard_normal([2000, 2])])
    for found, (mean, std) in zip(drawn, ((3, 0.5), (3, 1), (1, 0.5), (2, 0.1), (0, 1)), strict=True):
        assert found.shape == (2000, 2) and abs(found.mean() - mean) < 0.1 * std and abs(found.std() / std - 1) < 0.05


def test_what_is_known_without_a_run():
    assert paddle.broadcast_shape([2, 1, 3], [4, 1]) == [2, 4, 3]
    assert paddle.is_tensor(paddle.ones([1])) and not paddle.is_tensor(np.ones(1))
    assert paddle.get_cudnn_version() is None and not paddle.is_compiled_with_xpu()
    assert paddle.device.get_device() == paddle.get_device() and not paddle.device.is_compiled_with_xpu()
    paddle.set_printoptions(precision=3)
