"""Products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.program.ops.matrix import Factors

if TYPE_CHECKING:
    from fleet_mpi.export.onnx_graph import Step


def mul(k: Step) -> None:
    """X folded into a matrix, times Y folded likewise."""
    x, y, folded_x, folded_y = k.shape("X"), k.shape("Y"), k.attr("x_num_col_dims", 1), k.attr("y_num_col_dims", 1)
    if folded_y == 1 and len(y) == 2 and folded_x == len(x) - 1:
        k.put("Out", k.node("MatMul", k["X"], k["Y"]))   # a stack of rows needs no folding
        return
    left = k["X"] if len(x) == 2 else k.node("Flatten", k["X"], axis=folded_x)
    right = k["Y"] if len(y) == 2 else k.node("Flatten", k["Y"], axis=folded_y)
    product = k.node("MatMul", left, right)
    if folded_x > 1 or len(y) - folded_y > 1:
        product = k.reshape(product, [("X", axis) for axis in range(folded_x)]
                            + [("Y", axis) for axis in range(folded_y, len(y))])
    k.put("Out", product)


def matmul(k: Step) -> None:
    """Stacks of matrices, vectors as rows or columns, turned and scaled as asked for."""
    factors = Factors(k, k.shape("X"), k.shape("Y"))
    left = k.unsqueezed(k["X"], [0] if factors.vectors[0] else [])
    right = k.unsqueezed(k["Y"], [1] if factors.vectors[1] else [])
    left = turned(k, left, len(factors.x)) if factors.turn_x else left
    right = turned(k, right, len(factors.y)) if factors.turn_y else right
    made, full = k.node("MatMul", left, right), factors.full
    if factors.alpha != 1.0:
        made = k.node("Mul", made, k.constant(factors.alpha, k.dtype("X")))
    dropped = [len(full) - 2] if factors.vectors[0] and full[-2] == 1 else []
    dropped += [len(full) - 1] if factors.vectors[1] and full[-1] == 1 else []
    k.put("Out", k.reshape(made, [1]) if len(dropped) == len(full) else k.squeezed(made, dropped))


def turned(k: Step, value: str, rank: int) -> str:
    """The last two dimensions exchanged."""
    return k.node("Transpose", value, perm=[*range(rank - 2), rank - 1, rank - 2])


def dot(k: Step) -> None:
    """Inner products along the last dimension, which becomes 1."""
    k.put("Out", k.node("ReduceSum", k.node("Mul", k["X"], k["Y"]), k.constant([-1]), keepdims=1))


CONVERTERS = {"mul": mul, "matmul": matmul, "matmul_v2": matmul, "bmm": matmul, "dot": dot}
