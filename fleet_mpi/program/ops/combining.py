"""Ops over any number of variables: sums of gradients, concatenation."""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.program.registry import op


@op("sum", "X*", inplace={"Out": "X"})
class Sum:
    """The sum of all inputs, in their order; row gradients stay rows when all inputs are."""

    def infer(k):
        """As the first; all must agree."""
        kinds = [k.meta("X", i).kind for i in range(k.count("X"))]
        shapes = k.shapes("X")
        for shape in shapes[1:]:
            if len(shape) != len(shapes[0]) or any(a != b and -1 not in (a, b) for a, b in zip(shape, shapes[0])):
                k.fail(f"expected equal shapes, got {[list(one) for one in shapes]}")
        k.set("Out", shapes[0], kind="rows" if all(kind == "rows" for kind in kinds) else "dense")

    def run(k):
        """Add one after the other."""
        values, xp = k.all("X"), k.xp
        if k.meta("Out").kind == "rows":
            return join_rows(k, values)
        out = k["Out"]
        if any(isinstance(value, arrays.Rows) for value in values):
            return add_rows_to_dense(xp, values, out)
        if len(values) == 1:
            return lambda: xp.copyto(out, values[0])
        first, second, rest = values[0], values[1], values[2:]
        if not rest:
            return lambda: xp.add(first, second, out)

        def run():
            xp.add(first, second, out)
            for value in rest:
                xp.add(out, value, out)
        return run

    def make_grad(walk, op, grads):
        """Every input gets the output's gradient."""
        for name in op.input("X"):
            part = walk.contribution(name)
            if part:
                made = walk.block.append_op("assign", {"X": grads["Out"]}, {"Out": [part]})
                walk.add(name, part, made)


def join_rows(k, values):
    """Row gradients one behind the other; merging equal rows is left to who applies them."""
    count = sum(len(value) for value in values)
    first = values[0]
    xp = k.xp
    ids = k.keep((count,), np.int64)
    rows = k.keep((count,) + tuple(first.values.shape[1:]), first.values.dtype)
    k.put("Out", arrays.Rows(ids, rows, first.height))
    pieces, start = [], 0
    for value in values:
        end = start + len(value)
        pieces.append((ids[start:end], rows[start:end], value))
        start = end

    def run():
        for some_ids, some_rows, value in pieces:
            xp.copyto(some_ids, value.ids)
            xp.copyto(some_rows, value.values)
    return run


def add_rows_to_dense(xp, values, out):
    """A sum of which some parts are rows."""
    def run():
        total = 0
        for value in values:
            total = total + (value.to_dense() if isinstance(value, arrays.Rows) else value)
        xp.copyto(out, total)
    return run


@op("assign", "X", view={"Out": "X"})
class Assign:
    """A copy."""

    def infer(k):
        """As X."""
        k.set("Out", k.shape("X"), kind=k.meta("X").kind)

    def run(k):
        """Copy, unless a view serves."""
        if k.meta("X").kind != "dense":
            k.put("Out", k["X"])
            return None
        return k.view("Out", k["X"])

    def make_grad(walk, op, grads):
        """The output's gradient."""
        part = walk.contribution(op.input("X")[0])
        if part:
            made = walk.block.append_op("assign", {"X": grads["Out"]}, {"Out": [part]})
            walk.add(op.input("X")[0], part, made)
