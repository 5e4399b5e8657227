"""2.x, static: least squares by an inverse, a covariance learned through its Cholesky root, and what describes data."""

import numpy as np
import paddle

paddle.enable_static()
paddle.seed(3)
rng = np.random.RandomState(0)

# The weights of a line by the normal equations.
x = paddle.static.data("x", [None, 3])
y = paddle.static.data("y", [None])
gram = paddle.matmul(x, x, transpose_x=True)
weights = paddle.mv(paddle.inverse(gram), paddle.mv(paddle.t(x), y))

# The covariance that makes the data likeliest: S = A A^T + I / 100, log det S by its root.
identity = paddle.nn.initializer.Assign(np.eye(3, dtype="float32"))
factor = paddle.create_parameter([3, 3], "float32", default_initializer=identity)
spread = paddle.matmul(factor, factor, transpose_y=True) + paddle.diag(paddle.full([3], 0.01))
root = paddle.cholesky(spread)
log_det = 2.0 * paddle.sum(paddle.log(paddle.diag(root)))
inner = paddle.sum(paddle.matmul(x, paddle.inverse(spread)) * x, axis=1)
loss = 0.5 * (log_det + paddle.mean(inner))
paddle.optimizer.Adam(learning_rate=0.05).minimize(loss)

exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
true = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
data = rng.multivariate_normal(np.zeros(3), true, 2000).astype("float32")
target = data @ np.array([1, -2, 3], "float32")
for step in range(300):
    found = exe.run(feed={"x": data, "y": target}, fetch_list=[loss, weights, spread])
    if step == 0:
        first = found[0][0]
print("first=%g last=%g" % (first, found[0][0]))
print("least_squares=%.6f error=%g" % (np.abs(found[1] - [1, -2, 3]).max(), np.abs(found[2] - np.cov(data.T)).max()))

other = paddle.static.Program()
with paddle.static.program_guard(other, paddle.static.Program()):
    values = paddle.static.data("values", [500])
    numbers = paddle.assign(np.arange(1, 6, dtype="float32"))
    square = paddle.full([2, 2], 4.0)
    picked = paddle.index_sample(paddle.reshape(numbers, [1, 5]), paddle.assign(np.array([[4]], "int64")))
    east, north = (paddle.assign(np.array([one], "float32")) for one in ([1, 0, 0], [0, 1, 0]))
    up = paddle.cross(east, north, axis=1)
    outs = [paddle.histogram(values, bins=10, min=-10, max=10), paddle.median(numbers), paddle.trace(square),
            paddle.sum(paddle.kron(paddle.ones([3, 3]), square)) / 4.0, picked, paddle.log2(paddle.full([1], 2.0)) * up,
            paddle.dist(square, paddle.zeros([2, 2]), p=2), paddle.bernoulli(paddle.ones([3]))]
counted, middle, trace, product, chosen, crossed, apart, coins = exe.run(
    other, feed={"values": rng.randn(500).astype("float32")}, fetch_list=outs)
print("counted=%d middle=%g trace=%g kron=%g" % (counted.sum(), middle[0], trace[0], product[0]))
print("chosen=%g crossed=%g" % (chosen[0, 0], crossed[0, 2]))
assert apart[0] == 8 and coins.tolist() == [1, 1, 1]
