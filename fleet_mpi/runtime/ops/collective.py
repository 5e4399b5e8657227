"""The ops of collective programs: the only place where the graph meets the other workers.

``c_allreduce_sum`` tells that a gradient is made; its bucket may be on its way then. ``c_sync_comm_stream`` waits. The
others of a list of ops are there to be read.
"""

from functools import partial

from fleet_mpi.arrays import Rows
from fleet_mpi.program.graph.registry import Meta, op
from fleet_mpi.runtime import collective_sessions as sessions


def as_they_were(k):
    """Outputs are the inputs."""
    for index in range(k.count("X")):
        meta = k.meta("X", index)
        k.set("Out", meta.shape, meta.dtype, lod=(), index=index, kind=meta.kind)


@op("c_allreduce_sum", "X", "Out", attrs={"ring_id": 0, "use_calc_stream": False}, effect=True)
class CAllReduceSum:
    """A gradient becomes the sum over all workers, by the next ``c_sync_comm_stream``."""

    infer = as_they_were

    def run(k):
        """Tell the session; a gradient that does not lie in its bucket is copied there."""
        session, name, array = the_session(k), k.name("X"), k["X"]
        if name not in session.bucket_of:
            k.fail("this gradient is in no bucket of the scope's session: was the program changed after minimize?")
        session.move_to(k.xp)
        home = session.flat.views[name]
        k.put("Out", home)
        if array is home:
            return partial(session.ready, name)

        def copy_and_tell():
            home[...] = array
            session.ready(name)
        return copy_and_tell


@op("c_allgather_rows", "X", "Out", attrs={"ring_id": 0}, effect=True, dynamic=True)
class CAllGatherRows:
    """A row gradient becomes the rows of all workers; how many there are is known when they come."""

    infer = as_they_were

    def run(k):
        rows, session = k["X"], the_session(k)
        if not isinstance(rows, Rows):
            k.fail("expected a row gradient")
        found = session.gather_rows(rows)
        k.put("Out", found, meta=Meta((found.height, *found.values.shape[1:]), found.values.dtype, kind="rows"))


@op("c_broadcast", "X", "Out", attrs={"root": 0, "ring_id": 0}, effect=True)
class CBroadcast:
    """Shows that a variable begins with worker 0's value."""

    infer = as_they_were

    def run(k):
        """Nothing: ``c_sync_comm_stream`` does it for all."""


def enter_shown(type, attrs):
    """Enter an op that shows how the original makes its communicators: here they come from MPI."""
    class Shown:
        """There to be read."""

        def infer(k):
            """No outputs."""

        def run(k):
            """Nothing."""

    op(type, "", "", attrs=attrs, effect=True)(Shown)


enter_shown("gen_nccl_id", {"endpoint": "", "trainers": [], "trainer_id": 0, "nccl_comm_num": 1})
for _type in ("c_gen_nccl_id", "c_comm_init"):
    enter_shown(_type, {"ring_id": 0, "rank": 0, "nranks": 1, "other_endpoints": []})


@op("c_sync_comm_stream", "X*", "Out*", attrs={"ring_id": 0, "does": ""}, effect=True)
class CSyncCommStream:
    """Waits until all workers' values are there; ``does`` says which."""

    infer = as_they_were

    def run(k):
        """The end of what was begun."""
        session, does = the_session(k), k.attr("does")
        if does == "sums":
            for index in range(k.count("X")):
                # Where the sum is; in the scope may be another array by now.
                k.put("Out", session.flat.views[k.name("X", index)], index)
            return session.wait
        if does == "broadcast":
            names = [k.name("X", index) for index in range(k.count("X"))]
            return partial(session.broadcast, names)
        return None


def the_session(k):
    """The session of the scope an op runs in, when it is bound."""
    session = sessions.session_of(k.scope)
    if session is None:
        k.fail("this scope has no part in a collective job")
    return session
