"""Texts matched word by word: a pair's image, and its largest numbers in each row.

An image is [channels, height, width] of one pair, flat in the one column of X. How high and wide each is say the
lengths of the sequences of ROW and COLUMN, whose values are not read.
"""

import numpy as np

from fleet_mpi.kernels.products import product, products
from fleet_mpi.kernels.reference.largest import largest_places
from fleet_mpi.kernels.reference.sequence import add_rows
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.sequence import NO_LOD, forward_meta


def level_of(k, meta, slot):
    """The offsets of the one LoD level of an input."""
    if len(meta.lod) != 1:
        k.fail(f"{slot} {NO_LOD}" if not meta.lod else f"{slot}: expected one LoD level, got {len(meta.lod)}")
    return lod_rows.offsets_array(meta.lod[0])


class Images:
    """Where each pair's image lies in X: ``begins`` (one more than there are pairs), ``heights`` and ``widths``."""

    def __init__(self, k, channels, meta_of):
        self.channels = channels
        self.begins, self.rows, columns = (level_of(k, meta_of(slot), slot) for slot in ("X", "ROW", "COLUMN"))
        if not len(self.begins) == len(self.rows) == len(columns):
            k.fail(f"expected as many sequences in X, ROW and COLUMN, got {len(self.begins) - 1}, {len(self.rows) - 1} "
                   f"and {len(columns) - 1}")
        self.heights, self.widths = np.diff(self.rows), np.diff(columns)
        wrong = np.flatnonzero(np.diff(self.begins) != channels * self.heights * self.widths)
        if len(wrong):
            at = wrong[0]
            k.fail(f"image {at} of X has {np.diff(self.begins)[at]} numbers: expected {channels} channels x "
                   f"{self.heights[at]} (ROW) x {self.widths[at]} (COLUMN)")


def of_forward(k):
    """In a gradient: what gives the Meta of a forward variable by its slot."""
    return lambda slot: forward_meta(k, slot)


def require_column(k, slot):
    """Refuse an input that is not one column of numbers."""
    shape = k.shape(slot)
    if len(shape) != 2 or shape[1] not in (1, -1):
        k.fail(f"expected {slot} [numbers, 1], got {list(shape)}")


@op("match_matrix_tensor", "X Y W", "Out Tmp", attrs={"dim_t": 1}, grad_reads="X Y W Tmp")
class MatchMatrixTensor:
    """For each pair of sequences the image x W[:, t] y' of all rows x with all rows y, one of each t; Tmp is X W."""

    def infer(k):
        """One column, as long as all images; Tmp too."""
        x, y, weight = k.shape("X"), k.shape("Y"), k.shape("W")
        if len(x) != 2 or len(y) != 2 or len(weight) != 3:
            k.fail(f"expected X and Y [rows, columns] and W of 3 dimensions, got {list(x)}, {list(y)}, {list(weight)}")
        wanted = (x[1], k.attr("dim_t"), y[1])
        if any(a != b and a != -1 for a, b in zip(wanted, weight)):
            k.fail(f"expected W [columns of X, dim_t, columns of Y] = {list(wanted)}, got {list(weight)}")
        level = tuple(_pair_offsets(k, k.meta)[2].tolist()) if k.concrete else ()
        k.set("Out", [level[-1] if level else -1, 1], lod=(level,))
        k.set("Tmp", [-1 if -1 in x else x[0] * weight[1] * weight[2], 1], lod=())

    def run(k):
        """X W at once, then a product for each pair."""
        x, weight, made = k["X"], k["W"], _as_rows(k["Tmp"], k["X"], k["W"])
        multiply = product(x, weight.reshape(len(weight), -1), made.reshape(len(x), -1))
        pairs = _together([(rows.transpose(1, 0, 2), y.T, image)
                           for rows, y, image in _pairs(k, made, k["Y"], k["Out"], k.meta)])
        return lambda: (multiply(), pairs())

    def grad(k):
        """Of X W first."""
        x, weight, dout = k["X"], k["W"], k["Out@GRAD"]
        dmade, flat, calls = k.scratch((len(x), *weight.shape[1:]), dout.dtype), weight.reshape(len(weight), -1), []
        if k.has("X@GRAD") or k.has("W@GRAD"):
            pairs = _together([(image, y, rows.transpose(1, 0, 2))
                               for rows, y, image in _pairs(k, dmade, k["Y"], dout, of_forward(k))])
            calls += [lambda: dmade.fill(0), pairs]
        if k.has("X@GRAD"):
            calls.append(product(dmade.reshape(len(x), -1), flat.T, k["X@GRAD"]))
        if k.has("W@GRAD"):
            calls.append(product(x.T, dmade.reshape(len(x), -1), k["W@GRAD"].reshape(flat.shape)))
        if k.has("Y@GRAD"):
            calls += _y_grad_calls(k, _as_rows(k["Tmp"], x, weight), dout)
        return lambda: [call() for call in calls]


def _together(parts):
    """The call of several products, of which there may be none."""
    return products(parts) if parts else lambda: None


def _as_rows(made, x, weight):
    """Tmp as a row of [t, columns of Y] for each row of X."""
    return made.reshape(len(x), *weight.shape[1:])


def _pair_offsets(k, meta_of):
    """The offsets of X, Y and the images."""
    x, y = (level_of(k, meta_of(slot), slot) for slot in ("X", "Y"))
    if len(x) != len(y):
        k.fail(f"expected as many sequences in X and Y, got {len(x) - 1} and {len(y) - 1}")
    return x, y, np.concatenate([[0], np.cumsum(np.diff(x) * np.diff(y))]) * k.attr("dim_t")


def _pairs(k, made, y, images, meta_of):
    """Of each pair that has an image: its rows of X W, its rows of Y, its image [t, rows of X, rows of Y]."""
    offsets, found = [one.tolist() for one in _pair_offsets(k, meta_of)], []
    for (x0, y0, begin), (x1, y1, end) in zip(zip(*offsets), zip(*(one[1:] for one in offsets))):
        if end > begin:
            found.append((made[x0:x1], y[y0:y1], images.reshape(-1)[begin:end].reshape(-1, x1 - x0, y1 - y0)))
    return found


def _y_grad_calls(k, made, dout):
    """The calls that fill the gradient of Y: each pair's image, turned, times its rows of X W."""
    dy, xp, turned = k["Y@GRAD"], k.xp, k.scratch(dout.shape, dout.dtype)
    copies, parts = [], []
    for (rows, dys, image), (_, _, room) in zip(*(_pairs(k, made, dy, one, of_forward(k)) for one in (dout, turned))):
        left = room.reshape(len(dys), len(rows), -1)
        copies.append((left, image.transpose(2, 1, 0)))
        parts.append((left.reshape(len(dys), -1), rows.reshape(-1, rows.shape[2]), dys))
    return [lambda: dy.fill(0), lambda: [xp.copyto(left, image) for left, image in copies], _together(parts)]


@op("sequence_topk_avg_pooling", "X ROW COLUMN", "Out pos", attrs={"topks": [1], "channel_num": 1}, grad_reads="pos",
    no_grad="ROW COLUMN")
class SequenceTopkAvgPooling:
    """For each row of each channel of an image the averages of its ``topks`` largest numbers; missing ones count as 0.

    ``pos`` keeps the places of the largest in their rows, -1 for what is missing.
    """

    def infer(k):
        """A row for each row of ROW, whose LoD stays."""
        require_column(k, "X")
        topks, channels, rows = list(k.attr("topks")), k.attr("channel_num"), k.shape("ROW")[0]
        if not topks or min(topks) < 1 or sorted(topks) != topks or channels < 1:
            k.fail(f"expected topks in ascending order from 1 up and channel_num from 1 up, got {topks} and {channels}")
        k.set("Out", [rows, channels * len(topks)], lod=k.lod("ROW"))
        k.set("pos", [-1 if rows == -1 else rows * channels * topks[-1]], np.int32, lod=())

    def run(k):
        """The places, then running sums of what is there."""
        x, xp, topks = k["X"].reshape(-1), k.xp, list(k.attr("topks"))
        begins, widths, longest = _lines(k, k.meta)
        places, out = k["pos"].reshape(-1, topks[-1]), k["Out"].reshape(-1, len(topks))
        find, divisors, ends = largest_places.pick(x), *(xp.asarray(one) for one in (
            np.array(topks, x.dtype), np.array(topks) - 1))

        def run():
            find(x, begins, widths, longest, places)
            is_there = places >= 0
            if x.size:
                sums = xp.cumsum(xp.where(is_there, x[xp.where(is_there, begins[:, None] + places, 0)], 0), axis=1)
                xp.divide(sums[:, ends], divisors, out)
            else:
                out.fill(0)
        return run

    def grad(k):
        """Each number gets its share of every average it is in."""
        dx, xp, topks = k["X@GRAD"], k.xp, list(k.attr("topks"))
        places, dout = k["pos"].reshape(-1, topks[-1]), k["Out@GRAD"].reshape(-1, len(topks))
        begins, _, _ = _lines(k, of_forward(k))
        is_in = np.arange(topks[-1]) < np.array(topks)[:, None]
        shares = xp.asarray((is_in / np.array(topks)[:, None]).astype(dout.dtype))
        part = k.scratch(places.shape, dout.dtype)
        multiply, add = product(dout, shares, part), add_rows.pick(dx)

        def run():
            multiply()
            rows = xp.where(places >= 0, begins[:, None] + places, -1)
            add(part.reshape(-1, 1), rows.reshape(-1), dx)
        return run


def _lines(k, meta_of):
    """Where each row of each channel begins in X, in the order of Out; how wide each is, and the widest."""
    images = Images(k, k.attr("channel_num"), meta_of)
    image = np.repeat(np.arange(len(images.heights)), images.heights)
    row, width = np.arange(len(image)) - images.rows[image], images.widths[image]
    channel = np.arange(images.channels) * (images.heights[image] * width)[:, None]
    begins = (images.begins[image] + row * width)[:, None] + channel
    widths = np.repeat(width, images.channels)
    return k.xp.asarray(begins.reshape(-1)), k.xp.asarray(widths), int(images.widths.max(initial=0))
