"""Deformable convolution: each position of the filter reads the image where an offset says, and by a mask's weight."""

from fleet_mpi.kernels.reference.convolution import out_extent
from fleet_mpi.kernels.reference.rows import add_at
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.sampling_grids import two_sides

ATTRS = {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": 1, "deformable_groups": 1,
         "im2col_step": 64}


class Deformable:
    """Out = Filter times the sampled, weighted columns of Input."""

    def infer(k):
        """Sizes as of a convolution; offsets and mask must fit them."""
        x, weight, groups = k.shape("Input"), k.shape("Filter"), k.attr("groups")
        if len(x) != 4 or len(weight) != 4 or x[1] != weight[1] * groups or x[1] % k.attr("deformable_groups"):
            k.fail(f"expected images [N, C, H, W] and a Filter [filters, C / groups, h, w], C a multiple of both kinds "
                   f"of groups, got {list(x)} and {list(weight)}")
        size = [-1 if extent == -1 else out_extent(extent, window, stride, (pad, pad), dilation)
                for extent, window, stride, pad, dilation in zip(x[2:], weight[2:], k.attr("strides"),
                                                                 k.attr("paddings"), k.attr("dilations"))]
        points = k.attr("deformable_groups") * weight[2] * weight[3]
        for slot, channels in (("Offset", 2 * points), ("Mask", points)):
            if k.has(slot) and (k.shape(slot)[1] != channels or any(
                    a != b and -1 not in (a, b) for a, b in zip(k.shape(slot)[2:], size))):
                k.fail(f"expected {slot} [N, {channels}, {size[0]}, {size[1]}], got {list(k.shape(slot))}")
        k.set("Output", [x[0], weight[0], *size], lod=())

    def run(k):
        """Sample, then one product per image and group."""
        out, xp = k["Output"], k.xp

        def run():
            columns = weighted(k, sampled(k, pixels(k)))
            xp.copyto(out, xp.matmul(filters(k), as_columns(k, columns)).reshape(out.shape))
        return run

    def grad(k):
        """Back through the product, the mask and the sampling."""
        dout, xp = k["Output@GRAD"], k.xp
        given = dout.reshape(dout.shape[0], k.attr("groups"), -1, dout.shape[2] * dout.shape[3])

        def run():
            near = pixels(k)
            values = sampled(k, near)
            if k["Filter@GRAD"] is not None:
                product = xp.matmul(given, as_columns(k, weighted(k, values)).transpose(0, 1, 3, 2))
                xp.sum(product, axis=0, out=k["Filter@GRAD"].reshape(product.shape[1:]))
            back = from_columns(k, xp.matmul(filters(k).transpose(0, 2, 1), given), values.shape)
            if k["Mask"] is not None and k["Mask@GRAD"] is not None:
                xp.copyto(k["Mask@GRAD"], xp.sum(values * back, axis=5).reshape(k["Mask"].shape))
            back = weighted(k, back)
            to_image(k, near, back)
            to_offsets(k, near, back)
        return run


def filters(k):
    """[groups, filters of a group, weights]."""
    return k["Filter"].reshape(k.attr("groups"), k["Filter"].shape[0] // k.attr("groups"), -1)


def weighted(k, values):
    """Values [N, G, points, H, W, C / G] times the mask."""
    if k["Mask"] is None:
        return values
    return values * k["Mask"].reshape(values.shape[:5])[..., None]


def as_columns(k, values):
    """[N, groups, channels of a group * points, H * W]."""
    n, _, points, height, width, _ = values.shape
    return values.transpose(0, 1, 5, 2, 3, 4).reshape(n, k.attr("groups"), -1, height * width)


def from_columns(k, columns, shape):
    """The same the other way round."""
    n, groups, points, height, width, channels = shape
    return columns.reshape(n, groups, channels, points, height, width).transpose(0, 1, 3, 4, 5, 2)


def pixels(k):
    """The four pixels around each place: [(index, weight, (slope by y, slope by x))], each [N, G, points, H, W]."""
    xp, offset, (height, width) = k.xp, k["Offset"], k["Filter"].shape[2:]
    groups, (n, _, rows, columns) = k.attr("deformable_groups"), offset.shape
    moved = offset.reshape(n, groups, height * width, 2, rows, columns)
    sides = []
    for axis, count in ((0, rows), (1, columns)):
        stride, pad, dilation = (k.attr(name)[axis] for name in ("strides", "paddings", "dilations"))
        window = xp.arange(height * width) // width if axis == 0 else xp.arange(height * width) % width
        start = xp.arange(count).reshape((-1, 1) if axis == 0 else (1, -1)) * stride - pad
        place = moved[:, :, :, axis] + (window * dilation).reshape(-1, 1, 1) + start
        sides.append(two_sides(xp, place, xp.ones_like(place), k["Input"].shape[2 + axis]))
    samples, number = xp.arange(n).reshape(-1, 1, 1, 1, 1), xp.arange(groups).reshape(1, -1, 1, 1, 1)
    return [((samples, number, y, x), wy * wx, (sy * wx, wy * sx))
            for y, wy, sy in sides[0] for x, wx, sx in sides[1]]


def by_group(k, image):
    """[N, G, H, W, C / G], a view."""
    n, channels, height, width = image.shape
    groups = k.attr("deformable_groups")
    return image.reshape(n, groups, channels // groups, height, width).transpose(0, 1, 3, 4, 2)


def sampled(k, near):
    """The image at all places: [N, G, points, H, W, C / G]."""
    image, total = by_group(k, k["Input"]), 0
    for index, weight, _ in near:
        total = total + weight[..., None] * image[index]
    return total


def to_image(k, near, back):
    """Each pixel's gradient, by its weights."""
    dx = k["Input@GRAD"]
    if dx is not None:
        dx.fill(0)
        for index, weight, _ in near:
            add_at(by_group(k, dx), index, weight[..., None] * back)


def to_offsets(k, near, back):
    """The offsets' gradient, by the slopes between pixels."""
    if k["Offset@GRAD"] is not None:
        xp, image = k.xp, by_group(k, k["Input"])
        total = [0, 0]
        for index, _, slopes in near:
            share = xp.sum(image[index] * back, axis=5)
            total = [one + share * slope for one, slope in zip(total, slopes)]
        xp.copyto(k["Offset@GRAD"], xp.stack(total, axis=3).reshape(k["Offset"].shape))


op("deformable_conv", "Input Offset Mask Filter", "Output", attrs=ATTRS,
   grad_reads="Input Offset Mask Filter")(Deformable)
op("deformable_conv_v1", "Input Offset Filter", "Output", attrs=ATTRS, grad_reads="Input Offset Filter")(Deformable)
