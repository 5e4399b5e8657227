"""Our CUDA kernels on the device against their references on the host, to the bit; sums of layers within rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.arrays import to_host, to_module
from fleet_mpi.kernels.reference import rank_sums, unscaling, update
from fleet_mpi.launch.gpu_check import layer_cases
from fleet_mpi.launch.gpu_check.findings import FAIL, OK, Finding
from fleet_mpi.program.engine.places import CUDAPlace

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from fleet_mpi.kernels import Kernel

SIZE = 40_003  # some blocks of threads, and a rest


def check(device: int | None, quick: bool) -> list[Finding]:
    """Every kernel of every type of number."""
    xp = CUDAPlace(device).array_module()
    return ([compare(kernel, dtype, arguments, xp) for kernel, dtype, arguments in cases()]
            + [compare(kernel, dtype, arguments, xp, may_differ)
               for kernel, dtype, arguments, may_differ in layer_cases.cases()])


def cases() -> list[tuple[Kernel, str, list[Any]]]:
    """(kernel, dtype, arguments) of all; arrays among the arguments are compared afterwards."""
    found: list[tuple[Kernel, str, list[Any]]] = []
    for dtype in ("float32", "float64"):
        line, rate = _Lines(dtype), np.array([0.1], dtype)
        powers = [np.array([0.9], dtype), np.array([0.999], dtype)]
        found += [
            (update.sgd, dtype, [line(), line(), rate]),
            (update.momentum, dtype, [line(), line(), line(), rate, 0.9, True, 1e-4, 1.0]),
            (update.adam, dtype, [line(), line(), line(), line.squares(), *powers, rate, 0.9, 0.999, 1e-8, 0.01]),
            (rank_sums.sum_of_ranks, dtype, [np.stack([line() for _ in range(5)]), line()]),
            (unscaling.unscale, dtype, [line(), np.array([0.125], dtype), np.zeros(1, bool), line()])]
    halves = [_Lines("float32")().astype("float16") for _ in range(6)]
    found.append((rank_sums.sum_of_half_ranks, "float16", [np.stack(halves[:5]), halves[5]]))
    return found


def compare(kernel: Kernel | layer_cases.Group, dtype: str, arguments: list[Any], xp: ModuleType,
            may_differ: float = 0) -> Finding:
    """One kernel on the device and its reference on the host; so large a part of the largest value may differ."""
    name = f"{kernel.family}.{kernel.name}, {dtype}"
    here = [_copied(one, np) for one in arguments]
    there = [_copied(one, xp) for one in arguments]
    try:
        _run(kernel.reference, here)
        _run(kernel, there)
        got = [to_host(one) if isinstance(old, np.ndarray) else old for old, one in zip(arguments, there)]
    except Exception as error:  # a compiler's refusal, or a fault of the device
        return Finding(name, FAIL, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    wrong = sum(_different(one, other, may_differ) for one, other in zip(here, got) if isinstance(one, np.ndarray))
    expected = f"within {may_differ:g} of the largest value" if may_differ else "equal to the bit"
    if wrong:
        return Finding(name, FAIL, f"{wrong} elements differ from the reference's, expected {expected}",
                       numbers={"differ": wrong})
    return Finding(name, OK, expected)


def _run(version: Callable[..., Any], arguments: list[Any]) -> None:
    """Compute; some kernels are bound to their arrays first, and give a function back."""
    bound = version(*arguments)
    if callable(bound):
        bound()


class _Lines:
    """Lines of numbers of one type, some so small that a device may flush them to zero."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.rng = np.dtype(dtype), np.random.default_rng(3)

    def __call__(self) -> np.ndarray:
        line = self.rng.normal(size=SIZE).astype(self.dtype)
        line[::50] *= np.finfo(self.dtype).tiny / 64
        return line

    def squares(self) -> np.ndarray:
        """Numbers that are not negative."""
        return abs(self())


def _copied(argument: Any, xp: Any) -> Any:
    return to_module(argument.copy(), xp) if isinstance(argument, np.ndarray) else argument


def _different(one: np.ndarray, other: np.ndarray, may_differ: float) -> int:
    """How many elements have other bits, or are too far away."""
    if may_differ and one.dtype.kind == "f":
        return int((~(abs(one - other) <= may_differ * abs(one).max())).sum())
    bits = f"u{one.dtype.itemsize}"
    return int((one.view(bits) != other.view(bits)).sum())
