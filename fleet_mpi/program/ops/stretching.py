"""Ops that repeat or surround a variable: expand, tile, expand_as, pad, pad2d."""

from fleet_mpi.kernels.reference.rows import add_at
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.variable_arguments import are_unknown, given_numbers


def times(k, shape, counts):
    """Sizes after repeating; -1 where either is unknown."""
    return [-1 if -1 in (size, count) else size * count for size, count in zip(shape, counts)]


def led(shape, rank):
    """The shape with ones in front, so many dimensions in all."""
    return (1,) * (rank - len(shape)) + tuple(shape)


def split_up(shape, full):
    """``full`` as repeats and sizes by turns, and X's shape with a 1 for each repeat."""
    shape = led(shape, len(full))
    repeats = [whole // size if size else 1 for size, whole in zip(shape, full)]
    mixed = tuple(n for pair in zip(repeats, shape) for n in pair)
    return mixed, tuple(n for size in shape for n in (1, size))


def repeat_run(k):
    """One copy from a view that numpy's rule stretches over the repeats."""
    x, xp = k["X"], k.xp
    mixed, single = split_up(x.shape, k.shape("Out"))
    target, source = k["Out"].reshape(mixed), x.reshape(single)
    return lambda: xp.copyto(target, source)


def repeat_grad(k):
    """Sum over the repeats."""
    dx, dout, xp = k["X@GRAD"], k["Out@GRAD"], k.xp
    mixed, _ = split_up(dx.shape, dout.shape)
    source, target = dout.reshape(mixed), dx.reshape(mixed[1::2])
    axes = tuple(range(0, len(mixed), 2))
    return lambda: xp.sum(source, axis=axes, out=target)


def set_with_lod(k, shape):
    """``Out`` of this shape; X's sequences are kept where its rows are."""
    k.set("Out", shape, k.dtype("X"), lod=k.lod("X") if tuple(shape[:1]) == k.shape("X")[:1] else ())


def repeating(type, inputs, attrs=None):
    """Decorator: enter an op that repeats X; the class says the output's ``shape``."""
    def enter(body):
        body.infer = lambda k: set_with_lod(k, body.shape(k))
        body.run, body.grad = repeat_run, repeat_grad
        return op(type, inputs, attrs=attrs)(body)
    return enter


@repeating("expand", "X ExpandTimes? expand_times_tensor*", {"expand_times": []})
class Expand:
    """Each dimension repeated ``expand_times``."""

    def shape(k):
        """Sizes times repeats."""
        counts = given_numbers(k, "expand_times", "ExpandTimes", "expand_times_tensor")
        if len(counts) != len(k.shape("X")):
            k.fail(f"expand_times {counts} needs one number for each dimension of X {list(k.shape('X'))}")
        return times(k, k.shape("X"), counts)


@repeating("tile", "X RepeatTimes? repeat_times_tensor*", {"repeat_times": []})
class Tile:
    """Each dimension repeated ``repeat_times``; the shorter of the two gets ones in front."""

    def shape(k):
        """Sizes times repeats."""
        counts = given_numbers(k, "repeat_times", "RepeatTimes", "repeat_times_tensor")
        rank = max(len(counts), len(k.shape("X")))
        return times(k, led(k.shape("X"), rank), led(counts, rank))


@repeating("expand_v2", "X Shape? expand_shapes_tensor*", {"shape": []})
class ExpandV2:
    """Stretched to ``shape``; -1 keeps a size."""

    def shape(k):
        """``shape`` with -1 filled in."""
        wanted = given_numbers(k, "shape", "Shape", "expand_shapes_tensor")
        return stretched_to(k, wanted, are_unknown(k, "Shape expand_shapes_tensor"))


def stretched_to(k, wanted, unknown):
    """``wanted`` with -1 replaced by X's sizes; every size of X must be 1 or the wanted one.

    ``unknown``: -1 may also stand for a size that only the run will tell, which X has unless it has 1.
    """
    if len(wanted) < len(k.shape("X")):
        k.fail(f"X {list(k.shape('X'))} has more dimensions than the shape {list(wanted)}")
    old = led(k.shape("X"), len(wanted))
    for size, want in zip(old, wanted):
        if want != size and -1 not in (size, want) and size != 1:
            k.fail(f"X {list(k.shape('X'))} cannot be stretched to {list(wanted)}: sizes must be equal or 1")
    return [want if want != -1 or unknown and size == 1 else size for size, want in zip(old, wanted)]


@repeating("expand_as", "X target_tensor")
class ExpandAs:
    """Repeated to the shape of another variable."""

    def shape(k):
        """The other's; each size must be a multiple."""
        old, wanted = k.shape("X"), k.shape("target_tensor")
        fits = len(old) == len(wanted) and all(
            -1 in (size, want) or size and want % size == 0 for size, want in zip(old, wanted))
        if not fits:
            k.fail(f"X {list(old)} cannot be repeated to {list(wanted)}: each size must divide the other's")
        return wanted


@repeating("expand_as_v2", "X Y?", {"target_shape": []})
class ExpandAsV2:
    """Stretched to the shape of another variable, or to ``target_shape``."""

    def shape(k):
        """The other's."""
        return stretched_to(k, k.shape("Y") if k.has("Y") else k.attr("target_shape"), are_unknown(k, "Y"))


def between(paddings, shape):
    """Slices that leave the paddings out."""
    return tuple(slice(before, before + size) for (before, _), size in zip(paddings, shape))


@op("pad", "X", attrs={"paddings": [], "pad_value": 0.0})
class Pad:
    """``pad_value`` around X: two numbers for each dimension, before and after."""

    def infer(k):
        if len(k.attr("paddings")) != 2 * len(k.shape("X")):
            k.fail(f"paddings {k.attr('paddings')} needs two numbers for each dimension of X {list(k.shape('X'))}")
        set_with_lod(k, padded(k.shape("X"), pairs(k)))

    def run(k):
        """Fill, then copy the middle."""
        return pad_run(k, pairs(k), k.attr("pad_value"))

    def grad(k):
        return pad_grad(k, pairs(k))


def pairs(k):
    """(before, after) for each dimension."""
    flat = k.attr("paddings")
    return list(zip(flat[::2], flat[1::2]))


def pad_run(k, paddings, value):
    """The call that surrounds X with a value."""
    x, out, xp = k["X"], k["Out"], k.xp
    middle = out[between(paddings, x.shape)]
    return lambda: (out.fill(value), xp.copyto(middle, x))


def pad_grad(k, paddings):
    """The call that takes the middle of the gradient."""
    dx, xp = k["X@GRAD"], k.xp
    middle = k["Out@GRAD"][between(paddings, dx.shape)]
    return lambda: xp.copyto(dx, middle)


@op("pad2d", "X", attrs={"paddings": [0, 0, 0, 0], "mode": "constant", "pad_value": 0.0, "data_format": "NCHW"},
    given="Paddings?")
class Pad2d:
    """Images with a border: constant, reflected, or the edge repeated; paddings top, bottom, left, right."""

    def infer(k):
        if len(k.shape("X")) != 4 or k.attr("mode") not in ("constant", "reflect", "edge"):
            k.fail(f"expected X of 4 dimensions and mode constant, reflect or edge, got {list(k.shape('X'))}, "
                   f"{k.attr('mode')!r}")
        set_with_lod(k, padded(k.shape("X"), image_pairs(k)))

    def run(k):
        """Fill and copy, or gather rows and columns by number."""
        if k.attr("mode") == "constant":
            return pad_run(k, image_pairs(k), k.attr("pad_value"))
        x, out, xp = k["X"], k["Out"], k.xp
        index = border_index(k, x.shape)
        return lambda: xp.copyto(out, x[index])

    def grad(k):
        """The middle; reflected and repeated elements add theirs."""
        if k.attr("mode") == "constant":
            return pad_grad(k, image_pairs(k))
        dx, dout = k["X@GRAD"], k["Out@GRAD"]
        index = border_index(k, dx.shape)
        return lambda: (dx.fill(0), add_at(dx, index, dout))


def image_pairs(k):
    """(before, after) for each of the four dimensions."""
    top, bottom, left, right = given_paddings(k, 4)
    sides = [(top, bottom), (left, right)]
    return [(0, 0), (0, 0), *sides] if k.attr("data_format") == "NCHW" else [(0, 0), *sides, (0, 0)]


def given_paddings(k, count):
    """So many paddings, an attribute or a variable; None for each where only the run will tell."""
    if are_unknown(k, "Paddings"):
        return [None] * count
    found = given_numbers(k, "paddings", "Paddings", "")
    if len(found) != count:
        k.fail(f"expected {count} paddings, got {found}")
    return found


def padded(shape, paddings):
    """Sizes with paddings before and after; -1 where either is unknown."""
    return [-1 if size == -1 or None in pair else size + sum(pair) for size, pair in zip(shape, paddings)]


def border_index(k, shape):
    """An index into X that gives Out: which row and column each element comes from."""
    index = []
    for i, ((before, after), size) in enumerate(zip(image_pairs(k), shape)):
        places = [source_of(place, size, k.attr("mode")) for place in range(-before, size + after)]
        index.append(k.xp.asarray(places).reshape((-1,) + (1,) * (3 - i)))
    return tuple(index)


def source_of(place, size, mode):
    """Which element a place outside stands for."""
    if mode == "edge":
        return min(max(place, 0), size - 1)
    place = abs(place)
    return place if place < size else 2 * (size - 1) - place
