"""Comparisons and logic: the outputs are bool."""

from types import SimpleNamespace

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.elementwise import infer_binary, operands

COMPARISONS = {"less_than": "less", "less_equal": "less_equal", "greater_than": "greater",
               "greater_equal": "greater_equal", "equal": "equal", "not_equal": "not_equal"}
LOGIC = {"logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor"}
TESTS = {"isnan_v2": "isnan", "isinf_v2": "isinf", "isfinite_v2": "isfinite", "logical_not": "logical_not"}
# One answer for the whole variable: the test, and how the answers of the elements are put together.
OVERALL = {"isnan": ("isnan", "any"), "isinf": ("isinf", "any"), "isfinite": ("isfinite", "all")}


def two_sided(type, function):
    """Enter an op on X and Y, stretched as the arithmetic ops do."""
    def run(k):
        (x, y), out, compare = operands(k), k["Out"], getattr(k.xp, function)
        return lambda: compare(x, y, out)

    op(type, "X Y", attrs={"axis": -1, "force_cpu": False})(
        SimpleNamespace(infer=lambda k: infer_binary(k, "bool"), run=run))


def one_sided(type, function):
    """Enter an op that asks something of every element."""
    def run(k):
        x, out, ask = k["X"], k["Out"], getattr(k.xp, function)
        return lambda: ask(x, out)

    op(type, "X")(SimpleNamespace(infer=lambda k: k.set("Out", k.shape("X"), "bool"), run=run))


def overall(type, function, together):
    """Enter an op that asks something of all elements and gives one answer."""
    def run(k):
        x, out, xp = k["X"], k["Out"].reshape(()), k.xp
        x = getattr(x, "values", x)  # of row gradients
        ask, join, answers = getattr(xp, function), getattr(xp, together), k.scratch(x.shape, bool)
        return lambda: join(ask(x, answers), out=out)

    op(type, "X")(SimpleNamespace(infer=lambda k: k.set("Out", [1], "bool", lod=()), run=run))


for _type, _function in {**COMPARISONS, **LOGIC}.items():
    two_sided(_type, _function)
for _type, _function in TESTS.items():
    one_sided(_type, _function)
for _type, (_function, _together) in OVERALL.items():
    overall(_type, _function, _together)


@op("equal_all", "X Y")
class EqualAll:
    """Whether two variables are equal in shape and in every element."""

    def infer(k):
        k.set("Out", [1], "bool", lod=())

    def run(k):
        """Compare, then ask for all."""
        x, y, out, xp = k["X"], k["Y"], k["Out"], k.xp
        if tuple(x.shape) != tuple(y.shape):
            return lambda: out.fill(False)
        answers, one = k.scratch(x.shape, bool), out.reshape(())
        return lambda: xp.all(xp.equal(x, y, answers), out=one)


@op("is_empty", "X")
class IsEmpty:
    """Whether a variable has no elements."""

    def infer(k):
        k.set("Out", [1], "bool", lod=())

    def run(k):
        empty, out = k.meta("X").size == 0, k["Out"]
        return lambda: out.fill(empty)


@op("allclose", "Input Other", attrs={"rtol": 1e-5, "atol": 1e-8, "equal_nan": False})
class AllClose:
    """Whether |input - other| <= atol + rtol |other| everywhere; infinities of one sign count as equal."""

    def infer(k):
        k.set("Out", [1], "bool", lod=())

    def run(k):
        """Compare, then ask of all."""
        x, y, out, xp = k["Input"], k["Other"], k["Out"].reshape(()), k.xp
        rtol, atol, equal_nan = float(k.attr("rtol")), float(k.attr("atol")), k.attr("equal_nan")

        def run():
            near = (abs(x - y) <= abs(y) * rtol + atol) & xp.isfinite(y) | (x == y)
            xp.all(near | xp.isnan(x) & xp.isnan(y) if equal_nan else near, out=out)
        return run
