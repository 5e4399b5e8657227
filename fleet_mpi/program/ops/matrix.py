"""Products of matrices."""

from fleet_mpi.kernels.products import product, products
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.elementwise import reducer, sequence, stretched


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
        x, y = folded(k)
        return product(x, y, k["Out"].reshape(x.shape[0], y.shape[1]))

    def grad(k):
        """dX = dOut Y^T, dY = X^T dOut."""
        x, y = folded(k)
        dout, wanted = k["Out@GRAD"].reshape(x.shape[0], y.shape[1]), []
        if k.has("X@GRAD"):
            wanted.append((dout, y.T, k["X@GRAD"].reshape(x.shape)))
        if k.has("Y@GRAD"):
            wanted.append((x.T, dout, k["Y@GRAD"].reshape(y.shape)))
        return products(wanted)


def folded(k):
    """X and Y as matrices."""
    x, y = k["X"], k["Y"]
    return (x.reshape(rows_and_columns(x.shape, k.attr("x_num_col_dims"))),
            y.reshape(rows_and_columns(y.shape, k.attr("y_num_col_dims"))))


def turned(array):
    """The last two dimensions exchanged."""
    return array.swapaxes(-1, -2)


class Factors:
    """What a batched product needs to know: the shapes of both sides as matrices, and which are turned."""

    def __init__(self, k, x, y):
        v2 = k.op.type.startswith("matmul_v2")
        names = ("trans_x", "trans_y") if v2 else ("transpose_X", "transpose_Y")
        self.turn_x, self.turn_y = (bool(k.attr(name, False)) for name in names)
        if v2:  # turning a vector means nothing there
            self.turn_x, self.turn_y = self.turn_x and len(x) > 1, self.turn_y and len(y) > 1
        self.alpha = float(k.attr("alpha", 1.0))
        # A vector is a row on the left and a column on the right.
        self.x, self.y = (1,) * (len(x) == 1) + tuple(x), tuple(y) + (1,) * (len(y) == 1)
        self.vectors = len(x) == 1, len(y) == 1

    @property
    def left(self):
        """The shape of the left factor, turned if asked for."""
        return self.x[:-2] + (self.x[:-3:-1] if self.turn_x else self.x[-2:])

    @property
    def right(self):
        """The shape of the right factor, turned if asked for."""
        return self.y[:-2] + (self.y[:-3:-1] if self.turn_y else self.y[-2:])

    @property
    def full(self):
        """The shape of the product before dimensions of vectors are dropped."""
        return stretched(self.left[:-2], self.right[:-2]) + (self.left[-2], self.right[-1])

    @property
    def out(self):
        """The shape of the output."""
        full = list(self.full)
        if self.vectors[0] and full[-2] == 1:
            del full[-2]
        if self.vectors[1] and full[-1] == 1:
            del full[-1]
        return full or [1]

    def folds(self):
        """Whether the right side is one matrix for all rows of the left: then one large product does."""
        return len(self.y) == 2 and len(self.x) > 2 and not self.turn_x


def infer_product(k):
    """[..stack.., rows of X, columns of Y]."""
    factors = Factors(k, k.shape("X"), k.shape("Y"))
    inner = factors.left[-1], factors.right[-2]
    if -1 not in inner and inner[0] != inner[1]:
        k.fail(f"X {list(k.shape('X'))}{' turned' * factors.turn_x} has {inner[0]} columns, but "
               f"Y {list(k.shape('Y'))}{' turned' * factors.turn_y} has {inner[1]} rows")
    k.set("Out", factors.out)


def run_product(k):
    """One call of matmul, and a scaling where alpha asks for it."""
    x, y, out, xp = k["X"], k["Y"], k["Out"], k.xp
    factors = Factors(k, x.shape, y.shape)
    left, right = x.reshape(factors.x), y.reshape(factors.y)
    out = out.reshape(factors.full)
    if factors.folds():
        left, out = left.reshape(-1, left.shape[-1]), out.reshape(-1, out.shape[-1])
    left, right = turned(left) if factors.turn_x else left, turned(right) if factors.turn_y else right
    return scaled(xp, product(left, right, out), out, factors.alpha)


def scaled(xp, call, out, alpha):
    """The call, with its result multiplied by ``alpha``."""
    return call if alpha == 1.0 else lambda: (call(), xp.multiply(out, alpha, out))


def grad_product(k):
    """dX = dOut Y^T and dY = X^T dOut, each turned if its side was, summed where it was stretched."""
    x, y, dout = k["X"], k["Y"], k["Out@GRAD"]
    factors = Factors(k, x.shape, y.shape)
    x, y, dout = x.reshape(factors.x), y.reshape(factors.y), dout.reshape(factors.full)
    if factors.folds():
        x, dout = x.reshape(-1, x.shape[-1]), dout.reshape(-1, dout.shape[-1])
    left, right = turned(x) if factors.turn_x else x, turned(y) if factors.turn_y else y
    for_x = (right, turned(dout)) if factors.turn_x else (dout, turned(right))
    for_y = (turned(dout), left) if factors.turn_y else (turned(left), dout)
    sides = [_side(k, slot, shape, factors, pair) for slot, shape, pair in
             (("X@GRAD", x.shape, for_x), ("Y@GRAD", y.shape, for_y)) if k.has(slot)]
    multiply, after = products([side for side, _ in sides]), [call for _, calls in sides for call in calls]
    return sequence([multiply, *after])


def _side(k, slot, shape, factors, pair):
    """One side's gradient: the product to make, and the calls that finish it."""
    (one, other), xp = pair, k.xp
    target, after = k[slot].reshape(shape), []
    full = stretched(one.shape[:-2], other.shape[:-2]) + tuple(shape[-2:])
    out = target
    if tuple(full) != tuple(shape):
        out, write = k.scratch(full, target.dtype), reducer(k, slot, full, shape)
        after.append(lambda: write(out))
    if factors.alpha != 1.0:
        after.append(lambda: xp.multiply(target, factors.alpha, target))
    return (one, other, out), after


@op("matmul", "X Y", attrs={"transpose_X": False, "transpose_Y": False, "alpha": 1.0}, grad_reads="X Y")
class Matmul:
    """alpha times the product of (stacks of) matrices; a vector is a row on the left, a column on the right."""

    infer, run, grad = infer_product, run_product, grad_product


@op("matmul_v2", "X Y", attrs={"trans_x": False, "trans_y": False}, grad_reads="X Y")
class MatmulV2:
    """The product of (stacks of) matrices as the 2.x names mean it: a vector is never turned."""

    infer, run, grad = infer_product, run_product, grad_product


@op("bmm", "X Y", grad_reads="X Y")
class BatchedMatmul:
    """The products of the matrices of two equally long stacks."""

    run, grad = run_product, grad_product

    def infer(k):
        """[stack, rows of X, columns of Y]."""
        if len(k.shape("X")) != 3 or len(k.shape("Y")) != 3:
            k.fail(f"expected X and Y of three dimensions, got {list(k.shape('X'))} and {list(k.shape('Y'))}")
        infer_product(k)


@op("dot", "X Y", grad_reads="X Y")
class Dot:
    """The inner products along the last dimension, which becomes 1."""

    def infer(k):
        """X's shape, ending in 1."""
        x, y = k.shape("X"), k.shape("Y")
        if len(x) != len(y) or any(a != b and -1 not in (a, b) for a, b in zip(x, y)):
            k.fail(f"expected equal shapes, got X {list(x)} and Y {list(y)}")
        k.set("Out", tuple(x[:-1]) + (1,))

    def run(k):
        """Multiply, then sum each line."""
        x, y, out, xp = k["X"], k["Y"], k["Out"], k.xp
        products, sums = k.scratch(x.shape, x.dtype), out.reshape(out.shape[:-1])
        return lambda: (xp.multiply(x, y, products), xp.sum(products, axis=-1, out=sums))

    def grad(k):
        """Each side gets the other, times the output's gradient."""
        dout, xp = k["Out@GRAD"], k.xp
        pairs = [(k["Y"], k["X@GRAD"]), (k["X"], k["Y@GRAD"])]
        calls = [lambda other=other, grad=grad: xp.multiply(dout, other, grad)
                 for other, grad in pairs if grad is not None]
        return sequence(calls)
