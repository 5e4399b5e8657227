"""Ops that read images between their pixels: affine grids, sampling by a grid, resizing."""

import numpy as np

from fleet_mpi.kernels.reference.rows import add_at
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.variable_arguments import given_numbers


@op("affine_grid", "Theta OutputShape?", "Output", attrs={"output_shape": [], "align_corners": True},
    no_grad="OutputShape", grad_reads="Theta")
class AffineGrid:
    """Where each pixel of an output image lies in an input image that an affine map moves; -1 and 1 are its edges."""

    def infer(k):
        """[N, H, W, 2]."""
        shape = given_numbers(k, "output_shape", "OutputShape", "")
        if tuple(k.shape("Theta")[1:]) != (2, 3) or not k.has("OutputShape") and len(shape) != 4:
            k.fail(f"expected Theta [N, 2, 3] and an output shape [N, C, H, W], got {list(k.shape('Theta'))}, {shape}")
        height, width = shape[2:4] if len(shape) == 4 else (-1, -1)
        k.set("Output", [k.shape("Theta")[0], height, width, 2], lod=())

    def run(k):
        """[x, y, 1] of every pixel times the map."""
        theta, out, xp = k["Theta"], k["Output"], k.xp
        base, flat = pixel_places(k, out.shape, out.dtype), out.reshape(out.shape[0], -1, 2)
        turned = theta.transpose(0, 2, 1)
        return lambda: xp.matmul(base, turned, out=flat)

    def grad(k):
        dout, dx, xp = k["Output@GRAD"], k["Theta@GRAD"], k.xp
        base = pixel_places(k, dout.shape, dout.dtype)
        turned = dout.reshape(dout.shape[0], -1, 2).transpose(0, 2, 1)
        return lambda: xp.matmul(turned, base, out=dx)


def pixel_places(k, shape, dtype):
    """[x, y, 1] for each pixel of a grid [N, H, W, 2]."""
    lines = [np.linspace(-1, 1, size) if size > 1 else np.full(1, -1.0) for size in shape[1:3]]
    if not k.attr("align_corners"):
        lines = [(2 * np.arange(size) + 1) / size - 1 for size in shape[1:3]]
    y, x = np.meshgrid(*lines, indexing="ij")
    return k.xp.asarray(np.stack([x, y, np.ones_like(x)], -1).reshape(-1, 3).astype(dtype))


@op("grid_sampler", "X Grid", "Output", grad_reads="X Grid",
    attrs={"mode": "bilinear", "padding_mode": "zeros", "align_corners": True})
class GridSampler:
    """Images read at the places that a grid names, between pixels by linear interpolation."""

    def infer(k):
        """[N, C] of X, height and width of the grid."""
        x, grid = k.shape("X"), k.shape("Grid")
        if len(x) != 4 or len(grid) != 4 or grid[3] != 2:
            k.fail(f"expected X [N, C, H, W] and Grid [N, H, W, 2], got {list(x)} and {list(grid)}")
        for name, known in (("mode", ("bilinear", "nearest")), ("padding_mode", ("zeros", "border", "reflection"))):
            if k.attr(name) not in known:
                k.fail(f"{name}: expected {' or '.join(map(repr, known))}, got {k.attr(name)!r}")
        k.set("Output", [x[0], x[1], *grid[1:3]], lod=())

    def run(k):
        """The weighted values of up to four pixels."""
        x, out, xp = k["X"], k["Output"].transpose(0, 2, 3, 1), k.xp

        def run():
            total = 0
            for corner in corners(k):
                total = total + corner.weight[..., None] * corner.values(x)
            xp.copyto(out, total)
        return run

    def grad(k):
        """To the pixels by weight; to the grid by the slope between them."""
        x, dout, dx, dgrid, xp = k["X"], k["Output@GRAD"].transpose(0, 2, 3, 1), k["X@GRAD"], k["Grid@GRAD"], k.xp

        def run():
            found = corners(k)
            if dx is not None:
                dx.fill(0)
                for corner in found:
                    add_at(dx.transpose(0, 2, 3, 1), corner.place, corner.weight[..., None] * dout)
            if dgrid is not None:
                dgrid.fill(0)
                for corner in found:
                    share = xp.sum(corner.values(x) * dout, axis=3)
                    for axis in (0, 1):
                        part = dgrid[..., axis]
                        xp.add(part, share * corner.slopes[axis], out=part)
        return run


class Corner:
    """One pixel of each sampled place: its index, its weight, and how the weight changes with x and y of the grid."""

    def __init__(self, place, weight, slopes):
        self.place, self.weight, self.slopes = place, weight, slopes

    def values(self, x):
        """[N, H, W, C]."""
        return x.transpose(0, 2, 3, 1)[self.place]


def corners(k):
    """The pixels around each place of the grid: four, or the nearest one."""
    x, grid, xp = k["X"], k["Grid"], k.xp
    samples = xp.arange(x.shape[0]).reshape(-1, 1, 1)
    columns, lines = (sides(k, grid[..., axis], x.shape[3 - axis]) for axis in (0, 1))
    return [Corner((samples, line, column), wy * wx, (wy * sx, sy * wx))
            for line, wy, sy in lines for column, wx, sx in columns]


def sides(k, given, size):
    """Along one dimension: [(pixel, weight, slope of the weight)] of the pixels before and behind each place."""
    xp = k.xp
    place, slope = unfolded_place(k, given, size)
    if k.attr("mode") == "nearest":
        return inside(xp, [(xp.rint(place), xp.ones_like(place), xp.zeros_like(place))], size)
    return two_sides(xp, place, slope, size)


def two_sides(xp, place, slope, size):
    """The pixels before and behind places: [(pixel, weight, slope of the weight)]; those outside weigh nothing."""
    before = xp.floor(place)
    share = place - before
    return inside(xp, [(before, 1 - share, -slope), (before + 1, share, slope)], size)


def inside(xp, found, size):
    """The same with pixels that exist: outside of the image the weight is 0."""
    return [(xp.clip(at, 0, size - 1).astype("int64"), weight * is_inside, change * is_inside)
            for at, weight, change in found
            for is_inside in [((at >= 0) & (at <= size - 1)).astype(weight.dtype)]]


def unfolded_place(k, given, size):
    """(place in pixels, its slope by the grid's number), brought inside as ``padding_mode`` says."""
    xp, aligned = k.xp, k.attr("align_corners")
    factor = (size - 1) / 2 if aligned else size / 2
    place = (given + 1) * factor - (0 if aligned else 0.5)
    slope = xp.full_like(place, factor)
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    if k.attr("padding_mode") == "reflection" and high > low:
        span = high - low
        turns = xp.floor((place - low) / span)
        rest = place - low - turns * span
        is_odd = turns - 2 * xp.floor(turns / 2)
        place, slope = low + rest + is_odd * (span - 2 * rest), slope * (1 - 2 * is_odd)
    if k.attr("padding_mode") != "zeros":
        slope = slope * ((place >= 0) & (place <= size - 1)).astype(given.dtype)
        place = xp.clip(place, 0.0, size - 1.0)
    return place, slope


INTERPOLATION = {"out_d": -1, "out_h": -1, "out_w": -1, "scale": 0.0, "align_corners": True, "align_mode": 1,
                 "data_layout": "NCHW", "interp_method": "bilinear"}
NAMES_OF_SIZES = {1: ("out_w",), 2: ("out_h", "out_w"), 3: ("out_d", "out_h", "out_w")}


def spatial(k):
    """The dimensions that are resized."""
    rank = len(k.shape_of_forward("X") if "forward_vars" in k.attrs else k.shape("X"))
    return range(1, rank - 1) if k.attr("data_layout").endswith("C") else range(2, rank)


class Interpolation:
    """Images of another size, each dimension by linear interpolation or by the nearest pixel."""

    def infer(k):
        """The wanted sizes: of variables, by a scale, or of attributes."""
        shape, axes = list(k.shape("X")), spatial(k)
        if not 3 <= len(shape) <= 5:
            k.fail(f"expected images with 1 to 3 dimensions between batch and channels, got {shape}")
        for axis, size in zip(axes, wanted_sizes(k, [shape[axis] for axis in axes]), strict=True):
            if size < 1 and size != -1:
                k.fail(f"expected sizes from 1 up, got {size}")
            shape[axis] = size
        k.set("Out", shape, k.dtype("X"), lod=())

    def run(k):
        """One dimension after the other."""
        x, out, xp = k["X"], k["Out"], k.xp
        tables = [(axis, *sources(k, x.shape[axis], out.shape[axis])) for axis in spatial(k)]
        tables = [(axis, xp.asarray(low), xp.asarray(high), xp.asarray(
            share.astype(x.dtype).reshape((-1,) + (1,) * (x.ndim - axis - 1)))) for axis, low, high, share in tables]

        def run():
            value = x
            for axis, low, high, share in tables:
                value = xp.take(value, low, axis=axis) * (1 - share) + xp.take(value, high, axis=axis) * share
            xp.copyto(out, value)
        return run

    def grad(k):
        """Times the transposed matrix of each dimension."""
        dout, dx, xp = k["Out@GRAD"], k["X@GRAD"], k.xp
        matrices = [(axis, xp.asarray(matrix(k, dx.shape[axis], dout.shape[axis]).astype(dx.dtype)))
                    for axis in spatial(k)]

        def run():
            value = dout
            for axis, weights in matrices:
                value = xp.moveaxis(xp.tensordot(weights, value, axes=([0], [axis])), 0, axis)
            xp.copyto(dx, value)
        return run


def wanted_sizes(k, old):
    """The new size of each dimension; -1 where only the run will tell."""
    if k.has("SizeTensor") or k.has("OutSize"):
        found = given_numbers(k, "", "OutSize", "SizeTensor")
        return found if len(found) == len(old) else [-1] * len(old)
    if k.has("Scale"):
        value = k.known("Scale")
        factor = 0 if value is None else float(value.reshape(-1)[0])
        return [int(size * factor) if size != -1 and factor else -1 for size in old]
    if k.attr("scale"):
        return [-1 if size == -1 else int(size * k.attr("scale")) for size in old]
    return [k.attr(name) for name in NAMES_OF_SIZES[len(old)]]


def sources(k, old, new):
    """For each new place: the two old ones it lies between, and how near it is to the second."""
    aligned = k.attr("align_corners")
    ratio = ((old - 1) / (new - 1) if new > 1 else 0.0) if aligned else old / new
    places = np.arange(new) * ratio
    if k.op.type.startswith("nearest"):
        low = np.minimum((places + (0.5 if aligned else 0)).astype(np.int64), old - 1)
        return low, low, np.zeros(new)
    if not aligned and k.attr("align_mode") == 0:
        places = np.maximum((np.arange(new) + 0.5) * ratio - 0.5, 0)
    low = np.minimum(places.astype(np.int64), old - 1)
    return low, np.minimum(low + 1, old - 1), places - low


def matrix(k, old, new):
    """[new, old]: the weights of the old places in each new one."""
    low, high, share = sources(k, old, new)
    weights = np.zeros((new, old))
    np.add.at(weights, (np.arange(new), low), 1 - share)
    np.add.at(weights, (np.arange(new), high), share)
    return weights


for _type in ("linear_interp", "bilinear_interp", "trilinear_interp", "nearest_interp"):
    op(_type, "X OutSize? SizeTensor* Scale?", attrs=INTERPOLATION, no_grad="OutSize SizeTensor Scale")(Interpolation)
