"""Deep gradient compression among workers: each sends the largest of what it has gathered, the rest waits.

The arithmetic of one worker is in ``update_rules`` and ``kernels.update``; here is what goes between them: at first
whole gradients, past ``rampup_begin_step`` pairs of number and index. Knows no programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.kernels.reference import update
from fleet_mpi.update_rules import dgc_count, momentum, sgd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from fleet_mpi.arrays import Array

    class Wire(Protocol):
        """The way to the other workers."""

        def sum_now(self, array: Array) -> None:
            """Replace an array by the sum over all workers."""

        def gather(self, parts: list[np.ndarray]) -> list[list[np.ndarray]]:
            """Every worker's host arrays."""


def shared_step(wire: Wire, workers: int, share: Array, decay: Array | None, param: Array, grad: Array, rate: Array,
                velocity: Array, u: Array, v: Array, step: Array, mu: float, use_nesterov: bool,
                rampup_begin_step: int, rampup_step: int, sparsity: Sequence[float]) -> None:
    """Collective: one step of all workers, in place. Arrays are lines; ``step`` ([1] int64) counts from 0.

    ``share`` is this worker's part of the mean gradient and ``decay`` the term of weight decay (None: none).
    Before the ramp-up both are summed as a program without compression sums them, so the bits are those of plain
    momentum.
    """
    now = int(arrays.to_host(step)[0])
    step += 1
    if now < rampup_begin_step:
        total = share.copy()
        wire.sum_now(total)
        if decay is not None:
            total += decay
        momentum(param, total, rate, velocity, mu, use_nesterov)
        return
    count = dgc_count(grad.size, now - rampup_begin_step, rampup_step, sparsity)
    chosen = arrays.module_of(grad).empty_like(grad)
    update.dgc_select(grad, u, v, count, mu, use_nesterov, chosen)
    sgd(param, mean_of_chosen(wire, workers, chosen), rate)


def mean_of_chosen(wire: Wire, workers: int, chosen: Array) -> Array:
    """Collective: the workers' choices, zero elsewhere, added up in rank order and divided, in place of this one's."""
    host = arrays.to_host(chosen)
    indices = np.flatnonzero(host)
    index_type = np.int32 if host.size <= np.iinfo(np.int32).max else np.int64
    parts = wire.gather([indices.astype(index_type), host[indices]])
    total = np.zeros_like(host)
    for theirs, values in parts:
        total[theirs] += values  # no index comes twice from one worker
    total /= workers
    return arrays.to_module(total, arrays.module_of(chosen))
