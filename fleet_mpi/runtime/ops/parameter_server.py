"""The ops of distributed programs: the only place where the graph meets the servers.

They are bound to the session of the scope when a plan is made; one that takes its place makes plans anew.

In a worker's program the first ``recv`` does the exchange; ``send`` hands over row gradients, dense ones lie in
the flat array already; the barriers and the ops that split are there to be read. ``listen_and_serv`` is a server's
whole life.
"""

from fleet_mpi.arrays import Rows
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.graph.operator import ROLE_VAR
from fleet_mpi.program.graph.registry import op
from fleet_mpi.runtime import sessions


def nothing_to_infer(k):
    """No outputs."""


def nothing_to_run(k):
    """Nothing."""


def infer_parts(k):
    """Parts of a variable that lie within it: no memory of their own."""
    for index, shape in enumerate(k.attr("shapes", [])):
        k.set("Out", shape, k.dtype("X") if k.has("X") else "float32", lod=(), index=index, kind="raw")


@op("send", "X*", "Out*?", attrs={"epmap": [], "trainer_id": 0, "table": ""}, effect=True)
class Send:
    """Gradients on their way to the servers."""

    infer = nothing_to_infer

    def run(k):
        """A row gradient is handed over; a dense one is where it is sent from, or, on a device, copied there."""
        table, session = k.attr("table"), the_session(k)
        if not table:
            variable, *_ = k.attr(ROLE_VAR) or [k.name("X")]
            return session.bound_send(variable)
        rows = k["X"]
        if not isinstance(rows, Rows):
            k.fail("expected a row gradient")
        return session.bound_take(table, rows)


@op("split_byref", "X", "Out*", attrs={"sections": [], "shapes": []})
class SplitByRef:
    """Shows how a gradient is cut."""

    infer = infer_parts

    def run(k):
        """Views, for ops that are interpreted: nothing is to be done at each run."""
        begin = 0
        for index, shape in enumerate(k.attr("shapes")):
            k.put("Out", k["X"][begin:begin + shape[0]], index)
            begin += shape[0]


@op("split_selected_rows", "X", "Out*", attrs={"height_sections": [], "shapes": []})
class SplitSelectedRows:
    """Shows how the rows of a gradient are shared out."""

    infer = infer_parts
    run = nothing_to_run


@op("split_ids", "X", "Out*", attrs={"height_sections": [], "shapes": []})
class SplitIds:
    """Shows how the rows of a distributed table's gradient are shared out."""

    infer = infer_parts
    run = nothing_to_run


@op("recv", "X*", "Out*", attrs={"epmap": [], "trainer_id": 0, "param": "", "does": "", "shapes": [], "rows": []},
    effect=True)
class Recv:
    """Parameters from the servers: the op that says ``does`` works for all that follow."""

    def infer(k):
        """The parameter, or parts of it."""
        param = k.attr("param")
        for index, shape in enumerate(k.attr("shapes")):
            is_whole = k.name("Out", index) == param
            dtype = k.op.block._var_recursive(k.name("Out", index)).dtype
            k.set("Out", shape, dtype, lod=(), index=index, kind="dense" if is_whole else "raw")

    def run(k):
        """One exchange, or the first pull."""
        whole = k.value("Out") if k.name("Out") == k.attr("param") else k.scope.array(k.attr("param"))
        for index, (begin, shape) in enumerate(zip(k.attr("rows"), k.attr("shapes"))):
            if k.name("Out", index) != k.attr("param"):
                k.put("Out", whole[begin:begin + shape[0]], index)
        if k.attr("does") == "exchange":
            return the_session(k).bound_exchange()
        session = sessions.session_of(k.scope) if k.attr("does") == "initial" else None
        return None if session is None else session.pull


@op("recv_rate", "", "Out")
class RecvRate:
    """A learning rate as the servers' schedule has it, for scripts that print it."""

    def infer(k):
        k.set("Out", [1], k.op.block._var_recursive(k.name("Out")).dtype, lod=())

    def run(k):
        session, name, out = the_session(k), k.name("Out"), k["Out"]
        return lambda: out.fill(session.rate(name))


@op("send_barrier", "X*", "Out*?", attrs={"endpoints": []}, effect=True)
class SendBarrier:
    """Shows that all gradients of a round come before its parameters."""

    infer, run = nothing_to_infer, nothing_to_run


@op("fetch_barrier", "X*", "Out*?", attrs={"endpoints": []}, effect=True)
class FetchBarrier:
    """Shows the end of a round."""

    infer, run = nothing_to_infer, nothing_to_run


@op("fake_init", "", "Out", attrs={"shape": []})
class FakeInit:
    """A table that only the servers have: its shape, no memory."""

    def infer(k):
        k.set("Out", k.attr("shape"), "float32", lod=(), kind="raw")

    run = nothing_to_run


@op("listen_and_serv", "X*", "Out*?", attrs={"endpoint": ""}, effect=True)
class ListenAndServ:
    """Serves until every worker has left."""

    infer = nothing_to_infer

    def run(k):
        """Take the values from the scope, then serve."""
        distribution = k.program._distribution
        if distribution is None:
            raise ProgramError(f"{k.op}: this program was not made by a transpiler in this process; call "
                               f"get_pserver_program again")
        index, scope = k.program._server, k.scope
        return lambda: sessions.serve(distribution, index, scope)


def the_session(k):
    """The session of the scope an op runs in, when it is bound."""
    session = sessions.session_of(k.scope)
    if session is None:
        k.fail("this scope is not connected to servers")
    return session
