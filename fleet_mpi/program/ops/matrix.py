"""Products of matrices."""

from fleet_mpi.program.registry import op


def rows_and_columns(shape, split):
    """A shape folded into a matrix: the product of the first ``split`` sizes, and of the rest."""
    rows = cols = 1
    for size in shape[:split]:
        rows = -1 if -1 in (rows, size) else rows * size
    for size in shape[split:]:
        cols = -1 if -1 in (cols, size) else cols * size
    return rows, cols


@op("mul", "X Y", attrs={"x_num_col_dims": 1, "y_num_col_dims": 1}, grad_reads="X Y")
class MulMatrices:
    """X folded into a matrix after ``x_num_col_dims`` dimensions, times Y folded likewise."""

    def infer(k):
        """[..x rows.., ..y columns..]."""
        x, y = k.shape("X"), k.shape("Y")
        xs, ys = k.attr("x_num_col_dims"), k.attr("y_num_col_dims")
        inner_x, inner_y = rows_and_columns(x, xs)[1], rows_and_columns(y, ys)[0]
        if -1 not in (inner_x, inner_y) and inner_x != inner_y:
            k.fail(f"X {list(x)} folded after {xs} dimension(s) has {inner_x} columns, "
                   f"but Y {list(y)} has {inner_y} rows")
        k.set("Out", x[:xs] + y[ys:])

    def run(k):
        """One matrix product."""
        (x, y), out, dot = folded(k), k["Out"], k.xp.dot
        out = out.reshape(x.shape[0], y.shape[1])
        return lambda: dot(x, y, out)

    def grad(k):
        """dX = dOut Y^T, dY = X^T dOut."""
        (x, y), dot = folded(k), k.xp.dot
        dout = k["Out@GRAD"].reshape(x.shape[0], y.shape[1])
        yt, xt = y.T, x.T
        dx, dy = k["X@GRAD"], k["Y@GRAD"]
        dx = None if dx is None else dx.reshape(x.shape)
        dy = None if dy is None else dy.reshape(y.shape)
        if dx is None:
            return lambda: dot(xt, dout, dy)
        if dy is None:
            return lambda: dot(dout, yt, dx)
        return lambda: (dot(dout, yt, dx), dot(xt, dout, dy))


def folded(k):
    """X and Y as matrices."""
    x, y = k["X"], k["Y"]
    return (x.reshape(rows_and_columns(x.shape, k.attr("x_num_col_dims"))),
            y.reshape(rows_and_columns(y.shape, k.attr("y_num_col_dims"))))
