"""Convolution over images of any size: windows of each image side by side, then a product with the filters."""

import numpy as np

from fleet_mpi.kernels.products import product
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.matching import Images, of_forward, require_column


@op("var_conv_2d", "X ROW COLUMN W", "Out Col", grad_reads="W Col", no_grad="ROW COLUMN",
    attrs={"InputChannel": 1, "OutputChannel": 1, "StrideH": 1, "StrideW": 1, "KernelH": 1, "KernelW": 1})
class VarConv2d:
    """Each image with zeros around it, so that without strides it keeps its size; Col keeps its windows."""

    def infer(k):
        """One column of all images."""
        require_column(k, "X")
        wanted = (k.attr("OutputChannel"), k.attr("InputChannel") * k.attr("KernelH") * k.attr("KernelW"))
        if tuple(k.shape("W")) != wanted:
            k.fail(f"expected W [OutputChannel, InputChannel x KernelH x KernelW] = {list(wanted)}, got "
                   f"{list(k.shape('W'))}")
        sizes = [image.spots for image in _images(k, k.meta)] if k.concrete else None
        for slot, each in zip(("Out", "Col"), wanted):
            level = () if sizes is None else lod_rows.level_of(np.array(sizes, np.int64) * each)
            k.set(slot, [-1 if sizes is None else level[-1], 1], lod=(level,))

    def run(k):
        """Copies, then a product for each image."""
        columns, xp, weight, images = k["Col"], k.xp, k["W"], _filled_images(k, k.meta)
        copies = [pair for image in images for pair in image.pairs(columns, k["X"])]
        multiply = [product(weight, image.columns(columns), image.result(k["Out"])) for image in images]

        def run():
            columns.fill(0)
            for window, part in copies:
                xp.copyto(window, part)
            for call in multiply:
                call()
        return run

    def grad(k):
        """The filters' from the windows that were kept; the windows' back to where they were copied from."""
        calls, images = [], _filled_images(k, of_forward(k))
        if k.has("W@GRAD"):
            calls.append(_weight_grad_call(k, images))
        if k.has("X@GRAD"):
            calls.append(_input_grad_call(k, images))
        return lambda: [call() for call in calls]


def _weight_grad_call(k, images):
    dweight, part = k["W@GRAD"], k.scratch(k["W@GRAD"].shape, k["W@GRAD"].dtype)
    calls = [product(image.result(k["Out@GRAD"]), image.columns(k["Col"]).T, part) for image in images]

    def run():
        dweight.fill(0)
        for call in calls:
            call()
            dweight[...] += part
    return run


def _input_grad_call(k, images):
    dx, weight, dout = k["X@GRAD"], k["W"], k["Out@GRAD"]
    dcolumns = k.scratch(k["Col"].shape, dx.dtype)
    multiply = [product(weight.T, image.result(dout), image.columns(dcolumns)) for image in images]
    sums = [pair for image in images for pair in image.pairs(dcolumns, dx)]

    def run():
        dx.fill(0)
        for call in multiply:
            call()
        for window, part in sums:
            part[...] += window
    return run


class _Image:
    """One image: where it lies in X, its windows in Col, and its result in Out."""

    def __init__(self, k, begin, height, width, spots_before):
        self.channels, self.filters = k.attr("InputChannel"), k.attr("OutputChannel")
        self.begin, self.shape, self.before = begin, (self.channels, height, width), spots_before
        self.kernel, self.strides = (k.attr("KernelH"), k.attr("KernelW")), (k.attr("StrideH"), k.attr("StrideW"))
        self.spots_shape = tuple(-(-size // stride) for size, stride in zip((height, width), self.strides))
        self.spots = self.spots_shape[0] * self.spots_shape[1]

    def _part(self, array, each):
        begin = self.before * each
        return array.reshape(-1)[begin:begin + self.spots * each].reshape(each, self.spots)

    def result(self, out):
        """[filters, spots] of Out."""
        return self._part(out, self.filters)

    def columns(self, columns):
        """[numbers in a window, spots] of Col."""
        return self._part(columns, self.channels * self.kernel[0] * self.kernel[1])

    def pairs(self, columns, x):
        """For each place of a window, where it lies in all windows and what of the image it is there."""
        channels, height, width = self.shape
        image = x.reshape(-1)[self.begin:self.begin + channels * height * width].reshape(self.shape)
        windows = self.columns(columns).reshape(channels, *self.kernel, *self.spots_shape)
        for i in range(self.kernel[0]):
            spots_y, rows = self._reach(0, i)
            for j in range(self.kernel[1]):
                spots_x, places = self._reach(1, j)
                yield windows[:, i, j, spots_y, spots_x], image[:, rows, places]

    def _reach(self, axis, place):
        """The spots along an axis at which this place of the window is inside the image, and what lies there."""
        size, stride, spots = self.shape[1 + axis], self.strides[axis], self.spots_shape[axis]
        moved = place - self.kernel[axis] // 2
        first, end = max(0, -(moved // stride)), min(spots, -(-(size - moved) // stride))
        end = max(first, end)
        return slice(first, end), slice(first * stride + moved, first * stride + moved + (end - first) * stride, stride)


def _images(k, meta_of):
    where, images, before = Images(k, k.attr("InputChannel"), meta_of), [], 0
    for begin, height, width in zip(where.begins.tolist(), where.heights.tolist(), where.widths.tolist()):
        images.append(_Image(k, begin, height, width, before))
        before += images[-1].spots
    return images


def _filled_images(k, meta_of):
    """Those that have numbers at all."""
    return [image for image in _images(k, meta_of) if image.spots]
