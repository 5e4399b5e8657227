"""Gradients of equal workers, averaged over MPI while the backward pass runs.

The first backward pass shows in which order gradients are made; worker 0's order counts for all. From then on every
gradient lies in one flat array, a bucket of which is on its way as soon as its gradients, and all before them, are
made. The end of the backward pass waits for the last one. So after ``loss.backward()`` every ``p.grad`` is the mean.
"""

import contextlib
import functools
import weakref
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import torch

from fleet_mpi.collective.buckets import Gradient, fuse
from fleet_mpi.collective.choosing import Options
from fleet_mpi.connections.equal import EqualConnection, EqualTerms
from fleet_mpi.door.job import Job
from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server import agreement
from fleet_mpi.torch.arguments import array_of, the_job

Model = TypeVar("Model", bound=torch.nn.Module)

WHAT = "fleet.parallel"
USED = "which parameters were used"   # the last of the gradients: a number each, above 0 where any worker has one
_known: "weakref.WeakKeyDictionary[torch.nn.Module, _Gradients]" = weakref.WeakKeyDictionary()


def parallel(model: Model, *, how: str | None = None, bucket_mb: float = 32, last_mb: float = 1,
             job: Job | None = None) -> Model:
    """Collective: let ``backward`` leave the mean of all workers' gradients in every ``p.grad``; returns the model.

    All workers begin with worker 0's parameters and buffers. Every worker must run the same number of backward passes:
    each one ends with a wait for the others. Buffers, such as running statistics, are each worker's own afterwards.
    A parameter without a gradient on some workers counts as zeros there; one without a gradient on all keeps None.

    Args:
        how: "exact" adds in worker order, through shared memory on one node: the same bits on every run and every MPI;
            "fast" adds as the MPI library likes. None: as FLEET_MPI_ALLREDUCE says, or exact up to 8 workers.
        bucket_mb: what travels together, at most; ``last_mb`` is the limit of the bucket that nothing overlaps with.
    """
    if model in _known:
        raise UsageError(f"{WHAT}: this model's gradients are averaged already: call it once per model")
    job = the_job(job)
    gradients = _Gradients(model, job, Options(fuse_mb=bucket_mb, last_mb=last_mb, way=how or ""))
    job.broadcast([array_of(one, f"{WHAT}: {name!r}") for name, one in
                   (*model.named_parameters(), *model.named_buffers())])
    _known[model] = gradients
    return model


@contextlib.contextmanager
def no_sync(model: torch.nn.Module) -> Iterator[None]:
    """Keep gradients to this worker: backward passes in here add up, and the first one after it sends the whole."""
    if model not in _known:
        raise UsageError("fleet.no_sync: give the model that fleet.parallel returned")
    before, _known[model].is_active = _known[model].is_active, False
    try:
        yield
    finally:
        _known[model].is_active = before


class _Gradients:
    """The gradients of one model, and the hooks that tell when one is made."""

    def __init__(self, model: torch.nn.Module, job: Job, options: Options) -> None:
        self.params = {name: one for name, one in model.named_parameters() if one.requires_grad}
        arrays = {name: array_of(one, f"{WHAT}: {name!r}") for name, one in self.params.items()}
        arrays[USED] = np.empty(len(arrays), np.float32)
        self.shapes = {name: Gradient(name, one.shape, str(one.dtype)) for name, one in arrays.items()}
        self.options, self.group = options, job.group()
        agreement.refuse_differences(self.group.gather_values(
            {"parameter": {name: f"{one.dtype} {list(one.shape)}" for name, one in self.shapes.items()},
             "options": str(options)}), self.group.index)
        self.connection: EqualConnection | None = None   # from the end of the first backward pass on
        self.is_active, self.is_running = True, False
        self.made: dict[str, None] = {}                  # in this backward pass, in order
        self.sent = 0
        if self.group.size > 1:
            for name, one in self.params.items():
                one.register_post_accumulate_grad_hook(functools.partial(self._take, name))
            model.register_forward_pre_hook(self._require_order)

    def _require_order(self, *_: Any) -> None:
        if self.is_running and torch._C._current_graph_task_id() < 0:
            raise UsageError(f"worker {self.group.index}: a backward pass was left by an error while gradients were on "
                             f"their way to the other workers: none of them can go on; begin again from what was saved")

    def _take(self, name: str, param: torch.Tensor) -> None:
        """A gradient is made."""
        if not self.is_active:
            return
        if not self.is_running:
            self.is_running = True
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        if name in self.made:
            raise UsageError(f"{WHAT}: parameter {name!r} got two gradients in one backward pass: use "
                             f"checkpoint(..., use_reentrant=False)")
        self.made[name] = None
        if self.connection is not None:
            self._place(name)
            self._send_what_is_next(self.connection)

    def _place(self, name: str) -> None:
        """Let a gradient lie in the flat array, unless it does."""
        grad, view = self.params[name].grad, self.views[name]
        if grad is None:
            view.zero_()
        elif grad is not view:
            view.copy_(grad)
        self.params[name].grad = view

    def _send_what_is_next(self, connection: EqualConnection) -> None:
        """All workers must start buckets in one order, in whatever order gradients are made."""
        while self.sent < len(self.order) and self.order[self.sent] in self.made:
            connection.ready(self.order[self.sent])
            self.sent += 1

    def _finish(self) -> None:
        """The backward pass is over: wait for the sums."""
        connection = self.connection or self._connect()
        used = connection.flat.views[USED]
        used[...] = [one.grad is not None for one in self.params.values()]
        for name in self.params.keys() - self.made:
            self._place(name)
        self.made = dict.fromkeys(self.order)
        self._send_what_is_next(connection)
        connection.wait()
        for line in connection.flat.lines:
            np.multiply(line, 1.0 / self.group.size, out=line)
        for name, by_any in zip(self.params, used.tolist()):
            if not by_any:
                self.params[name].grad = None
        self.made, self.sent, self.is_running = {}, 0, False

    def _connect(self) -> EqualConnection:
        """Collective: the flat gradients, in the order of worker 0's first backward pass."""
        first = self.group.gather_values(list(self.made))[0]
        self.order = list(dict.fromkeys([*first, *self.shapes]))
        gradients = [self.shapes[name] for name in self.order]
        buckets = fuse(gradients, self.options.fuse_mb, self.options.last_mb)
        self.connection = EqualConnection(EqualTerms(self.group.size, self.group.index, gradients, buckets,
                                                     self.options, {}), self.group)
        self.connection.move_to(np)
        self.views = {name: torch.from_numpy(one) for name, one in self.connection.flat.views.items()}
        for name in self.made:
            self._place(name)
        return self.connection
