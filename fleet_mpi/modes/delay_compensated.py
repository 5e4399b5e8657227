"""Asynchronous training with compensation of the delay (DC-ASGD).

A gradient g was computed at parameters that the servers have left behind meanwhile. Each server remembers what it
last gave to each worker (bak) and corrects, element by element, for the way w has gone since::

    c = lambda g (w - bak),  cut to [-bound, bound];    g' = g + c g

which is g + lambda g g (w - bak), the original's formula at lambda 1, as long as the compensation is at most
``bound`` times the gradient: an estimate that says more than that is of no use, and without a bound it can blow up.
``bound`` = inf takes the guard away. With ``adaptive`` lambda is its own for every element::

    lambda / sqrt(mean_square + epsilon),    mean_square = decay mean_square + (1 - decay) g g

Then clipping, decay and the rule work on g'. Row gradients are applied without compensation. Memory: one image of
the parameters more per worker, and one for the mean squares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.modes import options
from fleet_mpi.modes.asynchronous import AsyncServer
from fleet_mpi.modes.base import Mode
from fleet_mpi.modes.sync import EachStepWorker

if TYPE_CHECKING:
    from fleet_mpi.parameter_server.inbox import Push


class DelayCompensatedServer(AsyncServer):
    """The server half. ``given`` is {worker: image of the parameters it has}."""

    options: ClassVar[tuple[str, ...]] = ("lambda_", "adaptive", "bound", "decay", "epsilon")

    def __init__(self, workers: int = 1, lambda_: float = 1.0, adaptive: bool = False, bound: float = 1.0,
                 decay: float = 0.95, epsilon: float = 1e-7) -> None:
        super().__init__(workers)
        self.factor = options.number("lambda_", lambda_, 0.0)
        self.adaptive = options.yes_or_no("adaptive", adaptive)
        self.bound = options.number("bound", bound, 0.0)
        self.decay = options.number("decay", decay, 0.0, 1.0)
        self.epsilon = options.number("epsilon", epsilon, 0.0)
        self.given: dict[int, np.ndarray] = {}
        self.mean_square: np.ndarray | None = None
        self._scratch: dict[tuple[str, np.dtype], np.ndarray] = {}

    def update(self, push: Push) -> None:
        """Compensate, then apply."""
        if push.worker in self.given:
            for ranges in self.server.image.ranges:
                for start, stop, dtype in ranges:
                    self._compensate(push.image, self.given[push.worker], start, stop, dtype)
        super().update(push)

    def answer(self, worker: int) -> None:
        """Give a worker the parameters, and remember them."""
        if worker not in self.given:
            self.given[worker] = arrays.empty(self.server.image.nbytes, np.uint8)
        self.given[worker][...] = self.server.dense.params
        # What was kept for the worker stays as it is until its next request: it can be sent from there.
        self.server.answer_values(self.server.inboxes[worker], self.given[worker])

    def on_leave(self, worker: int) -> None:
        """Its memory is not needed any more."""
        self.given.pop(worker, None)

    def _compensate(self, image: np.ndarray, given: np.ndarray, start: int, stop: int, dtype: np.dtype) -> None:
        grad, param = (one[start:stop].view(dtype) for one in (image, self.server.dense.params))
        change = self._room("change", dtype, len(grad))
        np.subtract(param, given[start:stop].view(dtype), out=change)
        np.multiply(change, grad, out=change)
        np.multiply(change, self._lambda(grad, start, stop, dtype), out=change)
        np.clip(change, -self.bound, self.bound, out=change)
        np.multiply(change, grad, out=change)
        np.add(grad, change, out=grad)

    def _lambda(self, grad: np.ndarray, start: int, stop: int, dtype: np.dtype) -> float | np.ndarray:
        """A number, or an array where every element has its own."""
        if not self.adaptive:
            return self.factor
        if self.mean_square is None:
            self.mean_square = arrays.empty(self.server.image.nbytes, np.uint8)
            self.mean_square[...] = 0
        mean, made = self.mean_square[start:stop].view(dtype), self._room("lambda", dtype, len(grad))
        np.multiply(grad, grad, out=made)
        np.multiply(made, 1.0 - self.decay, out=made)
        np.multiply(mean, self.decay, out=mean)
        np.add(mean, made, out=mean)
        np.add(mean, self.epsilon, out=made)
        np.sqrt(made, out=made)
        return np.divide(self.factor, made, out=made)

    def _room(self, name: str, dtype: np.dtype, length: int) -> np.ndarray:
        known = self._scratch.get((name, dtype))
        if known is None or len(known) < length:
            known = self._scratch[name, dtype] = arrays.empty(length, dtype)
        return known[:length]


MODE = Mode("delay_compensated", EachStepWorker, DelayCompensatedServer, lambda config: config.enable_dc_asgd,
            {"sync_mode": False, "enable_dc_asgd": True},
            {"lambda_": "dc_asgd_lambda", "adaptive": "dc_asgd_adaptive", "bound": "dc_asgd_bound"},
            corrects_delay=True)
