"""The ranks of ``benchmarks.allreduce``: all average the same gradients; rank 0 prints what was measured as JSON."""

import json
import os
import sys
import time

import numpy as np
from mpi4py import MPI

from benchmarks import inputs
from fleet_mpi import fluid
from fleet_mpi.collective.buckets import Gradient, fuse
from fleet_mpi.collective.group import Group
from fleet_mpi.runtime import collective_sessions
from fleet_mpi.transpile.collective import CollectivePlan

ROUND_S = 0.2
DEEP = (26 * 16 + 13, 400, 400, 400, 1)


def main(what, options):
    """Run one of the measurements below on this rank."""
    comm = MPI.COMM_WORLD.Dup()
    found = {"rates": rates, "hooks": hooks}[what](comm, **options)
    if comm.rank == 0:
        print(json.dumps(found), flush=True)


def gradients(shape):
    """The gradients of a model, in the order backward makes them; of a number: one of as many floats."""
    if shape == "resnet":
        convs = list(inputs.convolutions(50, 224))
        shapes = [size for conv in convs
                  for size in ((conv.outputs, conv.inputs, conv.kernel, conv.kernel), (conv.outputs,), (conv.outputs,))]
        shapes += [(convs[-1].outputs, inputs.CLASSES), (inputs.CLASSES,)]
    elif shape == "wide_and_deep":
        shapes = [size for wide, narrow in ((13, 1), *zip(DEEP, DEEP[1:])) for size in ((wide, narrow), (narrow,))]
    else:
        shapes = [(shape,)]
    return [Gradient(f"w{number}@GRAD", size, "float32") for number, size in reversed(list(enumerate(shapes)))]


def rates(comm, shape, rounds):
    """Seconds of one averaging by each way, of each round; ways take turns."""
    made = gradients(shape)
    ways = {"exact": Ours(comm, made, "exact"), "messages": Ours(comm, made, "exact", shared="0"),
            "fast": Ours(comm, made, "fast"), "raw": Raw(comm, made)}
    seconds = {name: [] for name in ways}
    counts = {name: steps_for(comm, way) for name, way in ways.items()}
    for _ in range(rounds):
        for name, way in ways.items():
            seconds[name].append(timed(comm, way, counts[name]))
    session = ways["exact"].session
    return {"seconds": seconds, "bytes": sum(one.nbytes for one in made), "gradients": len(made),
            "buckets": len(session.plan.buckets), "exact_by": type(session.reducers[0]).__name__}


def hooks(comm, shape, rounds):
    """Seconds a step of one rank spends on telling that gradients are made, where there is nobody to send them to."""
    alone = Ours(comm, gradients(shape), "exact")
    return {"seconds": [timed(comm, alone, 200) for _ in range(rounds)], "gradients": len(alone.names)}


def steps_for(comm, way):
    """How many averagings fill a round; the same number on every rank."""
    timed(comm, way, 2)
    return max(2, min(2000, int(ROUND_S / max(timed(comm, way, 2), 1e-7))))


def timed(comm, way, count):
    """Seconds of an averaging, of ``count``, on the slowest rank.

    Before each, every rank writes its gradients, as backward does: then they lie in the caches of the rank they are of.
    """
    seconds = 0.0
    for _ in range(count):
        way.array[...] = 0
        comm.Barrier()
        began = time.perf_counter()
        way.run()
        seconds += time.perf_counter() - began
    return comm.allreduce(seconds, MPI.MAX) / count


class Ours:
    """A session of collective training: every gradient is told to be ready, then all are waited for."""

    def __init__(self, comm, made, variant, shared="1"):
        os.environ.update(FLEET_MPI_ALLREDUCE=variant, FLEET_MPI_SHARED_MEMORY=shared)
        group = Group.over_mpi(comm.rank, [comm.Dup()], str) if comm.size > 1 else Group(0, [], 1)
        plan = CollectivePlan(comm.size, comm.rank, made, [], fuse(made))
        self.session = collective_sessions.connect(plan, fluid.Scope(), group)
        self.session.install(np)
        self.names, self.array = [one.name for one in made], self.session.flat.array
        self._check(comm)

    def _check(self, comm):
        """One averaging of known values."""
        views = self.session.flat.views
        for number, view in enumerate(views.values()):
            view[...] = number + comm.rank
        self.run()
        expected = sum(range(comm.size))
        wrong = [name for number, (name, view) in enumerate(views.items())
                 if not (view == number * comm.size + expected).all()]
        assert not wrong, f"rank {comm.rank}: not the sum: {wrong}"

    def run(self):
        """A step without a backward pass."""
        session = self.session
        for name in self.names:
            session.ready(name)
        session.wait()


class Raw:
    """One Allreduce of the same bytes."""

    def __init__(self, comm, made):
        self.comm, self.array = comm.Dup(), np.zeros(sum(one.nbytes for one in made) // 4, np.float32)

    def run(self):
        """The call."""
        self.comm.Allreduce(MPI.IN_PLACE, self.array)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
