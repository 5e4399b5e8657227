"""What CUDA kernels of a network's layers are checked with: convolution, normalization, pooling, rows, grouped updates.

Each case is (kernel, dtype, arguments, what part of the largest value may differ): none of a maximum, rows and updates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.kernels.cuda.update_groups import grouped
from fleet_mpi.kernels.reference import convolution, normalization, pooling, rows, update

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    from fleet_mpi.kernels import Kernel

    Case: TypeAlias = tuple[Kernel | "Group", str, list[Any], float]

# Of sums in another order, cuBLAS's among them.
ROUNDING = {"float32": 1e-4, "float64": 1e-10}
SIZES = (1, 700, 5000)  # of the parameters of a group: parts of a block, and more than one


def cases() -> list[Case]:
    """All of them, for both types."""
    return [case for dtype in ROUNDING for make in (_convolutions, _norms, _pools, _rows, _groups)
            for case in make(dtype, np.random.default_rng(4))]


class Group:
    """An update of several parameters, by one launch where the device has a kernel for it.

    Its arguments are the arrays of one parameter after those of another, then the numbers that all share.
    """

    family = "update_groups"

    def __init__(self, kernel: Kernel, arrays: int) -> None:
        self.kernel, self.arrays, self.name = kernel, arrays, kernel.name

    def reference(self, *arguments: Any) -> None:
        """One parameter after the other."""
        for call in self._calls(arguments):
            self.kernel.reference(*call)

    def __call__(self, *arguments: Any) -> None:
        version = self.kernel.pick(arguments[0])
        if version is self.kernel.reference:
            self.reference(*arguments)
        else:
            grouped(version, self._calls(arguments))()

    def _calls(self, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        end = self.arrays * len(SIZES)
        return [(*arguments[first:first + self.arrays], *arguments[end:]) for first in range(0, end, self.arrays)]


def _convolutions(dtype: str, rng: np.random.Generator) -> list[Case]:
    x, w, out = (rng.standard_normal(shape).astype(dtype) for shape in ((4, 6, 15, 14), (8, 3, 3, 3), (4, 8, 8, 7)))
    how = (2, 1, 1, 2)  # stride, padding, dilation, groups
    return [(kernel, dtype, [*arrays, *how], ROUNDING[dtype]) for kernel, arrays in (
        (convolution.conv_forward, (x, w, _unset(out))), (convolution.conv_backward_data, (out, w, _unset(x))),
        (convolution.conv_backward_weight, (x, out, _unset(w))))]


def _norms(dtype: str, rng: np.random.Generator) -> list[Case]:
    x, dout = rng.standard_normal((2, 8, 5, 9, 7)).astype(dtype)
    scale, bias, mean, variance = rng.uniform(0.5, 1.5, (4, 5)).astype(dtype)
    made = [_unset(scale) for _ in range(2)]
    return [(kernel, dtype, arguments, ROUNDING[dtype]) for kernel, arguments in (
        (normalization.batch_norm_forward, [x, scale, bias, _unset(x), *made, mean, variance, 0.9, 1e-5, True, 1]),
        (normalization.batch_norm_inference, [x, scale, bias, mean, variance, _unset(x), made[0], 1e-5, False, 1]),
        (normalization.batch_norm_backward, [x, dout, None, scale, mean, variance, _unset(x), *made, False, 1]))]


def _pools(dtype: str, rng: np.random.Generator) -> list[Case]:
    windows = pooling.sliding_windows((9, 12), 3, 2, 1)
    x, dout = (rng.standard_normal((3, 4, *size)).astype(dtype) for size in ((9, 12), map(_count, windows)))
    index = np.zeros(dout.shape, np.int32)
    pooling.max_pool_forward.reference(x, _unset(dout), index, windows)()
    return [(pooling.max_pool_forward, dtype, [x, _unset(dout), np.zeros_like(index), windows], 0),
            (pooling.max_pool_backward, dtype, [dout, index, _unset(x), windows], ROUNDING[dtype]),
            (pooling.avg_pool_forward, dtype, [x, _unset(dout), windows], ROUNDING[dtype]),
            (pooling.avg_pool_backward, dtype, [dout, _unset(x), windows], ROUNDING[dtype])]


def _rows(dtype: str, rng: np.random.Generator) -> list[Case]:
    """Ids that come again are added in their order, and the first one outside is noted."""
    ids = rng.integers(0, 50, 3000)
    table, values = (rng.standard_normal((count, 16)).astype(dtype) for count in (50, 3000))
    found: list[Case] = [(rows.scatter_add_rows, dtype, [table, ids, values, 3], 0)]
    if dtype == "float32":
        found.append((rows.note_outside, "int64", [ids, 0, 40, 45, 7, np.zeros(rows.NOTE_SIZE, np.int64)], 0))
    return found


def _groups(dtype: str, rng: np.random.Generator) -> list[Case]:
    def arrays(lines: int, *scalars: float) -> list[Any]:
        return [one for size in SIZES for one in (*abs(rng.standard_normal((lines, size))).astype(dtype),
                                                  *np.array(scalars, dtype).reshape(-1, 1))]
    return [(Group(update.sgd, 3), dtype, arrays(2, 0.1), 0),
            (Group(update.momentum, 4), dtype, [*arrays(3, 0.1), 0.9, True, 1e-3, 0.5], 0),
            (Group(update.adam, 7), dtype, [*arrays(4, 0.9, 0.99, 0.1), 0.9, 0.99, 1e-8, 0.01], 0)]


def _count(windows: pooling.Windows) -> int:
    return len(windows.starts)


def _unset(like: np.ndarray) -> np.ndarray:
    """What a kernel has to write: NaN where it does not."""
    return np.full_like(like, np.nan)
