"""Trainings through the room for PyTorch, and the same by a plain loop in one process.

Shared by the unit tests (loopback, one process) and by tests/mpi/test_torch.py. Import it where torch is.
"""

import contextlib
import copy
import hashlib
import threading

import numpy as np
import torch
from torch import nn
from torch.nn.functional import mse_loss

import fleet_mpi.torch as fleet
from fleet_mpi.arrays import Rows
from fleet_mpi.update_rules import RULES

STEPS = 5
ROWS, DIM = 50, 4
_drawing = threading.Lock()


class Forked(nn.Module):
    """Two heads, of which a batch uses one, and a layer that nobody uses."""

    def __init__(self):
        super().__init__()
        self.body, self.left, self.right = nn.Linear(20, 30), nn.Linear(30, 5), nn.Linear(30, 5)
        self.unused = nn.Linear(3, 3)

    def forward(self, x, to_left):
        """By the one head or the other."""
        hidden = torch.relu(self.body(x))
        return self.left(hidden) if to_left else self.right(hidden)


@contextlib.contextmanager
def seeded(seed):
    """First values by seed; workers that are threads draw from one generator, so one after the other."""
    torch.set_num_threads(1)   # each thread has its own number, and bits depend on it
    with _drawing, torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def one_thread():
    """Bits of sums may depend on how many threads they are cut for."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def forked(seed=0):
    """The model, with first values by seed."""
    with seeded(seed):
        return Forked()


def batch(worker, step, rows=8):
    """(x, y, which head) of a worker's step; in the first step worker 0 alone goes left, so that orders differ."""
    draw = torch.Generator().manual_seed(1000 * worker + step)
    return torch.randn(rows, 20, generator=draw), torch.randn(rows, 5, generator=draw), (worker + step) % 2 == 0


def backward(model, worker, step, around=contextlib.nullcontext):
    """The backward passes of a step: every third one accumulates two batches."""
    x, y, to_left = batch(worker, step)
    if step % 3 == 2:
        with around():
            mse_loss(model(x, to_left), y).backward()
    mse_loss(model(x.flip(0), to_left), y).backward()


def train_parallel(job, how="exact", to_none=True):
    """A worker's part by ``fleet.parallel``; returns the model."""
    model = fleet.parallel(forked(job.worker), how=how, last_mb=0.0005, bucket_mb=0.001, job=job)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2, weight_decay=0.1)
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=to_none)
        backward(model, job.worker, step, lambda: fleet.no_sync(model))
        optimizer.step()
    assert model.unused.weight.grad is None
    return model


def by_one_process(workers):
    """The same by one process that averages in worker order."""
    model = forked()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2, weight_decay=0.1)
    for step in range(STEPS):
        found = []
        for worker in range(workers):
            optimizer.zero_grad()
            backward(model, worker, step)
            found.append([one.grad for one in model.parameters()])
        for one, grads in zip(model.parameters(), zip(*found)):
            one.grad = averaged(grads, one)
        optimizer.step()
    return model


def averaged(grads, like):
    """The sum in worker order, times one over their number; None where no worker has a gradient."""
    if all(one is None for one in grads):
        return None
    first, *others = [torch.zeros_like(like) if one is None else one for one in grads]
    for one in others:
        first = first + one
    return first * (1.0 / len(grads)) if others else first


class Clicks(nn.Module):
    """Rows of a table, looked up twice, and a linear layer."""

    def __init__(self, job):
        super().__init__()
        self.rows = fleet.Embedding("user", DIM, ROWS, rule="adagrad", lr=0.1, init=first_rows(), job=job)
        self.last = nn.Linear(2 * DIM, 1)

    def forward(self, ids):
        """A number for each pair of ids."""
        return self.last((self.rows(ids) + self.rows(ids)).flatten(1)).squeeze(1)


def first_rows():
    """Of the table."""
    return np.random.default_rng(7).normal(size=(ROWS, DIM)).astype("float32")


def ids_of(worker, step):
    """Pairs, some of which repeat."""
    return torch.randint(0, ROWS, (16, 2), generator=torch.Generator().manual_seed(100 * worker + step))


def clicks_loss(model, ids):
    """How far it is from the ids' mean."""
    return ((model(ids) - ids.float().mean(1) / ROWS) ** 2).mean()


def train_by_servers(job, rule="adam", backend=None):
    """A worker's part by servers: a table and two groups with a schedule; returns (model, optimizer)."""
    with seeded(job.worker):
        model = Clicks(job)
    optimizer = fleet.server_optimizer(
        [{"params": [("weight", model.last.weight)]}, {"params": [("bias", model.last.bias)], "lr": 0.1}],
        rule, lr=0.01, job=job)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    run = model if backend is None else torch.compile(model, backend=backend)
    for step in range(STEPS):
        optimizer.zero_grad()
        clicks_loss(run, ids_of(job.worker, step)).backward()
        optimizer.step()
        schedule.step()
    return model, optimizer


def by_numpy(workers, rule="adam"):
    """The same by rules on numpy arrays; returns (parameters, rows)."""
    with seeded(0):
        model = nn.Linear(2 * DIM, 1)
    params = [one.detach().numpy() for one in model.parameters()]
    states = [RULES[rule].new_states(one) for one in params]

    def update(step, found):
        for number, (one, grads) in enumerate(zip(params, found)):
            rate = np.array([(0.01, 0.1)[number] * 0.5 ** (step // 2)], "float32")
            RULES[rule].run(one, grads.numpy(), rate, *states[number], **RULES[rule].complete({}))
    return params, rows_by_numpy(workers, model, update)


def rows_by_numpy(workers, last, update):
    """Train the rows below a last layer, which ``update(step, mean gradients)`` trains; returns the rows."""
    rows = first_rows()
    states = RULES["adagrad"].new_states(rows)
    for step in range(STEPS):
        found, pushed = [], []
        for worker in range(workers):
            last.zero_grad()
            taken = [torch.from_numpy(rows[ids_of(worker, step)]).requires_grad_() for _ in range(2)]
            clicks_loss(lambda ids: last((taken[0] + taken[1]).flatten(1)).squeeze(1), ids_of(worker, step)).backward()
            found.append([one.grad for one in last.parameters()])
            pushed.append([one.grad.numpy() for one in taken])
        update(step, [averaged(grads, one) for grads, one in zip(zip(*found), last.parameters())])
        _update_rows(rows, states, pushed, [ids_of(worker, step).numpy().reshape(-1) for worker in range(workers)])
    return rows


def train_beside_parallel(job):
    """A worker's part: rows on servers, the layer above them by ``fleet.parallel``; returns the model."""
    with seeded(job.worker):
        model = Clicks(job)
    fleet.parallel(model, how="exact", job=job)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        clicks_loss(model, ids_of(job.worker, step)).backward()
        optimizer.step()
        job.step()
    return model


def beside_by_one_process(workers):
    """The same by one process; returns (last layer, rows)."""
    with seeded(0):
        last = nn.Linear(2 * DIM, 1)
    optimizer = torch.optim.SGD(last.parameters(), 0.1)

    def update(step, found):
        for one, mean in zip(last.parameters(), found):
            one.grad = mean
        optimizer.step()
    return last, rows_by_numpy(workers, last, update)


def _update_rows(rows, states, pushed, ids):
    """Each worker adds its gradients up by id, one by one; the servers take the mean of those, in worker order."""
    total, touched = np.zeros((ROWS, DIM), "float32"), np.unique(np.concatenate(ids))
    for grads, mine in zip(pushed, ids):
        own = np.zeros((ROWS, DIM), "float32")
        for one in grads:
            np.add.at(own, mine, one.reshape(-1, DIM))
        total += own
    if len(ids) > 1:
        total *= np.float32(1.0 / len(ids))
    RULES["adagrad"].run(rows, Rows(touched, total[touched], ROWS), np.array([0.1], "float32"), *states)


def digest(*arrays):
    """SHA-256 of the bytes of arrays, tensors, or the parameters of models."""
    made = hashlib.sha256()
    for one in arrays:
        for part in one.parameters() if isinstance(one, nn.Module) else [one]:
            made.update(np.ascontiguousarray(part.detach() if isinstance(part, torch.Tensor) else part).tobytes())
    return made.hexdigest()[:16]


def train_by_ddp(job):
    """Stock DistributedDataParallel over the job's process group; returns the model."""
    model = nn.parallel.DistributedDataParallel(forked(job.worker), process_group=fleet.process_group(job=job),
                                                find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(2):
        x, y, to_left = batch(job.worker, step)
        optimizer.zero_grad()
        mse_loss(model(x, to_left), y).backward()
        optimizer.step()
    return model.module


def by_halves(workers):
    """What it should be: DistributedDataParallel divides gradients before they are added."""
    model = forked()
    for step in range(2):
        found = []
        for worker in range(workers):
            own = copy.deepcopy(model)
            x, y, to_left = batch(worker, step)
            mse_loss(own(x, to_left), y).backward()
            found.append([one.grad for one in own.parameters()])
        with torch.no_grad():
            for one, grads in zip(model.parameters(), zip(*found)):
                mean = averaged(grads, one)
                if mean is not None:
                    one.sub_(mean, alpha=0.1)
    return model
