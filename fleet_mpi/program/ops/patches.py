"""Ops that cut images into overlapping patches: unfold (patches as columns), im2sequence (patches as rows of a
sequence)."""

from fleet_mpi.kernels.reference.convolution import out_extent
from fleet_mpi.program.graph.registry import op


class Window:
    """The geometry of patches: sizes, strides, paddings (up, left, down, right) and dilations of an op."""

    def __init__(self, k, sizes, dilations=(1, 1)):
        up, left, down, right = four_sides(k)
        self.sizes, self.strides, self.dilations = tuple(sizes), tuple(k.attr("strides")), tuple(dilations)
        self.pads = (up, down), (left, right)

    def counts(self, k, shape):
        """How many patches lie along height and width; -1 where unknown."""
        found = [-1 if size == -1 else out_extent(size, *rest) for size, *rest in zip(
            shape[2:], self.sizes, self.strides, self.pads, self.dilations)]
        if any(count < 1 and count != -1 for count in found) or 0 in found:
            k.fail(f"no patch of {list(self.sizes)} fits into images {list(shape[2:])} with paddings {self.pads}")
        return found

    def padded(self, shape):
        """The shape of images with their border."""
        return tuple(shape[:2]) + tuple(size + sum(pair) for size, pair in zip(shape[2:], self.pads))

    def middle(self, border, shape):
        """The images inside of their border."""
        (up, _), (left, _) = self.pads
        return border[:, :, up:up + shape[2], left:left + shape[3]]

    def positions(self, border, counts):
        """For each position (row, column) of a patch: (row, column, the elements there of all patches)."""
        for row in range(self.sizes[0]):
            for column in range(self.sizes[1]):
                top, left = row * self.dilations[0], column * self.dilations[1]
                yield row, column, border[:, :, top:top + counts[0] * self.strides[0]:self.strides[0],
                                          left:left + counts[1] * self.strides[1]:self.strides[1]][
                                              :, :, :counts[0], :counts[1]]


def four_sides(k):
    """paddings of an op as up, left, down, right."""
    given = list(k.attr("paddings"))
    return given * 2 if len(given) == 2 else given


def cut_call(k, window, x, patches):
    """The call that fills ``patches`` [N, C, row, column, count, count] from images."""
    xp, counts = k.xp, patches.shape[4:]
    border = k.scratch(window.padded(x.shape), x.dtype)
    middle = window.middle(border, x.shape)
    pairs = [(patches[:, :, row, column], part) for row, column, part in window.positions(border, counts)]

    def run():
        border.fill(0)
        xp.copyto(middle, x)
        for target, part in pairs:
            xp.copyto(target, part)
    return run


def paste_call(k, window, patches, dx):
    """The call that adds patches to where they were cut from."""
    xp, counts = k.xp, patches.shape[4:]
    border = k.scratch(window.padded(dx.shape), dx.dtype)
    middle = window.middle(border, dx.shape)
    pairs = [(patches[:, :, row, column], part) for row, column, part in window.positions(border, counts)]

    def run():
        border.fill(0)
        for source, part in pairs:
            xp.add(part, source, out=part)
        xp.copyto(dx, middle)
    return run


@op("unfold", "X", "Y", attrs={"kernel_sizes": [1, 1], "strides": [1, 1], "paddings": [0, 0, 0, 0],
                               "dilations": [1, 1]})
class Unfold:
    """The patches of each image as columns: [N, channels * patch size, number of patches]."""

    def infer(k):
        shape = k.shape("X")
        if len(shape) != 4:
            k.fail(f"expected images [N, C, H, W], got {list(shape)}")
        rows, columns = unfold_window(k).counts(k, shape)
        size = k.attr("kernel_sizes")[0] * k.attr("kernel_sizes")[1]
        k.set("Y",
              [shape[0], -1 if shape[1] == -1 else shape[1] * size, -1 if -1 in (rows, columns) else rows * columns],
              lod=())

    def run(k):
        """One copy for each position of a patch."""
        x, window = k["X"], unfold_window(k)
        return cut_call(k, window, x, as_patches(k, k["Y"], x.shape, window))

    def grad(k):
        dx, window = k["X@GRAD"], unfold_window(k)
        return paste_call(k, window, as_patches(k, k["Y@GRAD"], dx.shape, window), dx)


def unfold_window(k):
    """The geometry of an unfold."""
    return Window(k, k.attr("kernel_sizes"), k.attr("dilations"))


def as_patches(k, columns, shape, window):
    """Columns as [N, C, row, column, count, count]."""
    return columns.reshape(tuple(shape[:2]) + window.sizes + tuple(window.counts(k, shape)))


@op("im2sequence", "X", attrs={"kernels": [1, 1], "strides": [1, 1], "paddings": [0, 0, 0, 0]})
class Im2Sequence:
    """The patches of each image as the rows of a sequence, from left to right and top to bottom."""

    def infer(k):
        """One sequence per image, all equally long."""
        shape = k.shape("X")
        if len(shape) != 4 or shape[1] == -1:
            k.fail(f"expected images [N, C, H, W] of known C, got {list(shape)}")
        rows, columns = Window(k, k.attr("kernels")).counts(k, shape)
        width = shape[1] * k.attr("kernels")[0] * k.attr("kernels")[1]
        if -1 in (rows, columns, shape[0]):
            k.set("Out", [-1, width], lod=((),))
        else:
            count = rows * columns
            k.set("Out", [shape[0] * count, width], lod=(tuple(range(0, shape[0] * count + 1, count)),))

    def run(k):
        """One copy for each position of a patch."""
        x, window = k["X"], Window(k, k.attr("kernels"))
        return cut_call(k, window, x, rows_as_patches(k, k["Out"], x.shape, window))

    def grad(k):
        dx, window = k["X@GRAD"], Window(k, k.attr("kernels"))
        return paste_call(k, window, rows_as_patches(k, k["Out@GRAD"], dx.shape, window), dx)


def rows_as_patches(k, lines, shape, window):
    """Rows of a sequence as [N, C, row, column, count, count]."""
    n, c = shape[:2]
    return lines.reshape((n,) + tuple(window.counts(k, shape)) + (c,) + window.sizes).transpose(0, 3, 4, 5, 1, 2)
