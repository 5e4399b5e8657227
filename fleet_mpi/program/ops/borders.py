"""Borders of volumes: constant, reflected, replicated, or continued from the other side."""

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.stretching import given_paddings, pad_grad, pad_run, padded, set_with_lod, source_of

MODES = {"constant": None, "reflect": "reflect", "replicate": "edge", "circular": "circular"}


@op("pad3d", "X", attrs={"paddings": [0] * 6, "mode": "constant", "value": 0.0, "data_format": "NCDHW"},
    given="Paddings?")
class Pad3d:
    """Volumes with a border; paddings left, right, top, bottom, front, back."""

    def infer(k):
        shape = k.shape("X")
        if len(shape) != 5 or k.attr("mode") not in MODES:
            k.fail(f"expected X of 5 dimensions and mode {', '.join(MODES)}; got {list(shape)} and {k.attr('mode')!r}")
        most = {"reflect": -1, "circular": 0}.get(k.attr("mode"))
        for size, pair in zip(shape, volume_pairs(k)):
            if most is not None and size != -1 and None not in pair and max(pair) > size + most:
                k.fail(f"mode {k.attr('mode')}: expected paddings of at most {size + most} for X {list(shape)}, got "
                       f"{pair}")
        set_with_lod(k, padded(shape, volume_pairs(k)))

    def run(k):
        """Fill and copy, or take places by number, one dimension after the other."""
        if k.attr("mode") == "constant":
            return pad_run(k, volume_pairs(k), k.attr("value"))
        x, out, xp = k["X"], k["Out"], k.xp
        tables = [(axis, xp.asarray(places)) for axis, places in padded_places(k, x.shape)]

        def run():
            value = x
            for axis, places in tables:
                value = xp.take(value, places, axis=axis)
            xp.copyto(out, value)
        return run

    def grad(k):
        """The middle; what was taken from elsewhere is added there."""
        if k.attr("mode") == "constant":
            return pad_grad(k, volume_pairs(k))
        dx, dout, xp, pairs = k["X@GRAD"], k["Out@GRAD"], k.xp, volume_pairs(k)
        tables = padded_places(k, dx.shape)

        def run():
            value = dout
            for axis, places in tables:
                value = xp.moveaxis(folded_back(xp.moveaxis(value, axis, 0), places, *pairs[axis]), 0, axis)
            xp.copyto(dx, value)
        return run


def volume_pairs(k):
    """(before, after) for each of the five dimensions."""
    left, right, top, bottom, front, back = given_paddings(k, 6)
    sides = [(front, back), (top, bottom), (left, right)]
    return [(0, 0), (0, 0), *sides] if k.attr("data_format") == "NCDHW" else [(0, 0), *sides, (0, 0)]


def padded_places(k, shape):
    """[(dimension, the place that each of its new places is taken from)] of those that get a border."""
    mode, tables = MODES[k.attr("mode")], []
    for axis, ((before, after), size) in enumerate(zip(volume_pairs(k), shape)):
        if before or after:
            numbers = range(-before, size + after)
            tables.append((axis, [one % size if mode == "circular" else source_of(one, size, mode) for one in numbers]))
    return tables


def folded_back(wide, places, before, after):
    """The middle of the first dimension, each slice of the border added to the one that it was taken from."""
    end = len(places) - after
    made = wide[before:end].copy()
    for place in (*range(before), *range(end, len(places))):
        made[places[place]] += wide[place]
    return made
