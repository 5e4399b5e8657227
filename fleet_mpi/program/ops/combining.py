"""Ops over any number of variables: sums of gradients, concatenation."""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.kernels.reference.joining import cuts, join, part
from fleet_mpi.kernels.reference.rows import add_at
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.variable_arguments import are_unknown, given_number, given_numbers


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
        # A variable named twice, or the output itself, among the rest must last until it is added.
        total = k.scratch(out.shape, out.dtype) if any(xp.may_share_memory(out, value) for value in rest) else out
        last = rest.pop()

        def run():
            xp.add(first, second, total)
            for value in rest:
                xp.add(total, value, total)
            xp.add(total, last, out)
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


def joined(values):
    """Row gradients one behind the other, in new arrays."""
    xp = arrays.module_of(values[0].values)
    return arrays.Rows(xp.concatenate([value.ids for value in values]),
                       xp.concatenate([value.values for value in values]), values[0].height)


def whole(rows):
    """All of the array of which these are some rows, the others being zero."""
    dense = arrays.module_of(rows.values).zeros((rows.height, *rows.values.shape[1:]), rows.values.dtype)
    add_at(dense, rows.ids, rows.values)
    return dense


def add_rows_to_dense(xp, values, out):
    """A sum of which some parts are rows."""
    def run():
        total = 0
        for value in values:
            total = total + (whole(value) if isinstance(value, arrays.Rows) else value)
        xp.copyto(out, total)
    return run


@op("assign", "X", view={"Out": "X"})
class Assign:
    """A copy."""

    def infer(k):
        k.set("Out", k.shape("X"), kind=k.meta("X").kind)

    def run(k):
        """Copy, unless a view serves."""
        if k.meta("X").kind != "dense":
            k.put("Out", k["X"])
            return None
        return k.view("Out", k["X"])

    def make_grad(walk, op, grads):
        part = walk.contribution(op.input("X")[0])
        if part:
            made = walk.block.append_op("assign", {"X": grads["Out"]}, {"Out": [part]})
            walk.add(op.input("X")[0], part, made)


def known_axis(k, slot):
    """``axis`` of the variables in a slot, from 0 up; None where it is a variable that only the run will tell."""
    rank, axis = len(k.shape(slot)), given_number(k, "axis", "AxisTensor")
    if axis is None:
        return None
    if not -rank <= axis < rank:
        k.fail(f"axis {axis} is outside variables of {rank} dimensions")
    return axis % rank


def copies(xp, pairs):
    """One call that copies each source into its target; a missing source is zeros."""
    pairs = [(target, source) for target, source in pairs if target is not None]
    if any(source is None for _, source in pairs):
        return lambda: _copy_or_clear(xp, pairs)
    copyto = xp.copyto

    def run():
        for target, source in pairs:
            copyto(target, source)
    return run


def _copy_or_clear(xp, pairs):
    for target, source in pairs:
        if source is None:
            target.fill(0)
        else:
            xp.copyto(target, source)


@op("concat", "X*", attrs={"axis": 0}, given="AxisTensor?")
class Concat:
    """The inputs one behind the other along ``axis``."""

    def infer(k):
        """The sizes along the axis add up; all others must agree."""
        shapes = k.shapes("X")
        axis = known_axis(k, "X")
        if axis is None:
            return k.set("Out", [-1] * len(shapes[0]), k.dtype("X"), lod=())
        out = list(shapes[0])
        for shape in shapes[1:]:
            if len(shape) != len(out) or any(a != b and -1 not in (a, b) and i != axis
                                             for i, (a, b) in enumerate(zip(shape, out))):
                k.fail(f"expected shapes that agree but for axis {axis}, got {[list(one) for one in shapes]}")
            out = [b if a == -1 else a for a, b in zip(out, shape)]
        sizes = [shape[axis] for shape in shapes]
        out[axis] = -1 if -1 in sizes else sum(sizes)
        k.set("Out", out, k.dtype("X"), lod=() if axis == 0 and len(shapes) > 1 else None)

    def run(k):
        pieces, out, axis = k.all("X"), k["Out"], known_axis(k, "X")
        if axis == 0 and lie_in(pieces, out):
            return None
        return join(out, pieces, axis)

    def grad(k):
        """Each input gets its piece."""
        dout, axis = k["Out@GRAD"], known_axis(k, "Out@GRAD")
        shapes = [k.meta_of(name).shape for name in k.attrs["forward_vars"]["X"]]
        return part(dout, k.all("X@GRAD"), [shape[axis] for shape in shapes], axis)


def lie_in(pieces, whole):
    """Whether host arrays are already the parts of another, in order: the blocks of a parameter are."""
    if not arrays.is_host(whole):
        return False
    at = whole.ctypes.data
    for piece in pieces:
        if piece.ctypes.data != at or not piece.flags.c_contiguous:
            return False
        at += piece.nbytes
    return at == whole.ctypes.data + whole.nbytes


@op("split", "X", "Out*", attrs={"num": 0, "sections": [], "axis": 0}, given="AxisTensor? SectionsTensorList*")
class Split:
    """X cut along ``axis``: into ``num`` equal pieces, or into ``sections``, one of which may be -1."""

    def infer(k):
        """The sizes of the pieces."""
        shape, axis, dtype = list(k.shape("X")), known_axis(k, "X"), k.dtype("X")
        if axis is None:
            for i in range(k.count("Out")):
                k.set("Out", [-1] * len(shape), dtype, (), i)
            return
        for i, size in enumerate(sections_of(k, shape[axis])):
            k.set("Out", [*shape[:axis], size, *shape[axis + 1:]], dtype, () if axis == 0 else None, i)

    def run(k):
        x, axis = k["X"], known_axis(k, "X")
        return part(x, k.all("Out"), sections_of(k, x.shape[axis]), axis)

    def grad(k):
        """The pieces' gradients put together again."""
        dx, axis = k["X@GRAD"], known_axis(k, "X@GRAD")
        indices = cuts(axis, sections_of(k, dx.shape[axis], k.count("Out@GRAD")))
        return copies(k.xp, [(dx[index], dout) for dout, index in zip(k.all("Out@GRAD"), indices)])


def sections_of(k, size, count=None):
    """The sizes of the pieces along the axis; -1 where only the run will tell."""
    count = count or k.count("Out")
    sections = given_numbers(k, "sections", "", "SectionsTensorList")
    if are_unknown(k, "SectionsTensorList"):
        return sections
    if not sections:
        if size >= 0 and size % count:
            k.fail(f"{size} cannot be split into {count} equal pieces")
        return [-1 if size < 0 else size // count] * count
    if len(sections) != count or sections.count(-1) > 1:
        k.fail(f"sections {sections} do not fit {count} outputs (at most one may be -1)")
    if size >= 0 and -1 in sections:
        sections[sections.index(-1)] = size - sum(one for one in sections if one != -1)
    if size >= 0 and (sum(sections) != size or min(sections) < 0):
        k.fail(f"sections {sections} do not add up to {size}")
    return sections


@op("stack", "X*", "Y", attrs={"axis": 0})
class Stack:
    """The inputs side by side along a new dimension ``axis``."""

    def infer(k):
        shapes = k.shapes("X")
        if any(len(shape) != len(shapes[0]) or any(a != b and -1 not in (a, b) for a, b in zip(shape, shapes[0]))
               for shape in shapes):
            k.fail(f"expected equal shapes, got {[list(one) for one in shapes]}")
        out = list(shapes[0])
        out.insert(new_axis(k, len(out)), len(shapes))
        k.set("Y", out, lod=())

    def run(k):
        pieces, out, xp = k.all("X"), k["Y"], k.xp
        axis = new_axis(k, pieces[0].ndim)
        return lambda: xp.stack(pieces, axis=axis, out=out)

    def grad(k):
        """Each input gets its slice."""
        dout = k["Y@GRAD"]
        axis = new_axis(k, dout.ndim - 1)
        return copies(k.xp, [(dx, dout[nth(axis, i)]) for i, dx in enumerate(k.all("X@GRAD"))])


def nth(axis, i):
    """The index of the i-th slice along an axis; always a view, even of a vector."""
    return (slice(None),) * axis + (i, Ellipsis)


def new_axis(k, rank):
    """Where a dimension is put in, negative numbers counting from the end of the result."""
    axis = k.attr("axis", 0)
    if not -rank - 1 <= axis <= rank:
        k.fail(f"axis {axis} is outside a result of {rank + 1} dimensions")
    return axis % (rank + 1)


@op("unstack", "X", "Y*", attrs={"axis": 0, "num": 0})
class Unstack:
    """X cut into slices along ``axis``, which is dropped."""

    def infer(k):
        shape, axis = k.shape("X"), known_axis(k, "X")
        if shape[axis] not in (-1, k.count("Y")):
            k.fail(f"X {list(shape)} has {shape[axis]} slices along axis {axis}, but {k.count('Y')} outputs")
        for i in range(k.count("Y")):
            k.set("Y", shape[:axis] + shape[axis + 1:], index=i, lod=())

    def run(k):
        x, axis = k["X"], known_axis(k, "X")
        return copies(k.xp, [(out, x[nth(axis, i)]) for i, out in enumerate(k.all("Y"))])

    def grad(k):
        """The slices' gradients put together again."""
        dx, axis = k["X@GRAD"], known_axis(k, "X@GRAD")
        return copies(k.xp, [(dx[nth(axis, i)], dout) for i, dout in enumerate(k.all("Y@GRAD"))])
