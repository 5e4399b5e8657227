"""Softmax over one dimension, its logarithm, and the cross entropy of logits."""

from functools import partial

from fleet_mpi.kernels.reference import softmax as kernels
from fleet_mpi.program.engine.outside import Check
from fleet_mpi.program.graph.registry import op


def class_axis(k, slot):
    """The dimension that holds the classes, counted from 0."""
    rank = len(k.shape(slot))
    axis = k.attr("axis", -1)
    if not -rank <= axis < rank:
        k.fail(f"axis {axis} is not a dimension of {slot}, whose shape is {list(k.shape(slot))}")
    return axis % rank


def by_class(array, axis):
    """A view with the classes on axis 1: [rows, classes], or [outer, classes, inner]."""
    outer, inner = _sizes_around(array.shape, axis)
    classes = array.shape[axis]
    return array.reshape((outer, classes) if inner == 1 else (outer, classes, inner))


def by_row(array, shape, axis):
    """A view of labels or losses that fits ``by_class`` of an array of this shape."""
    outer, inner = _sizes_around(shape, axis)
    return array.reshape((outer,) if inner == 1 else (outer, inner))


def _sizes_around(shape, axis):
    outer = inner = 1
    for size in shape[:axis]:
        outer *= size
    for size in shape[axis + 1:]:
        inner *= size
    return outer, inner


def same_shape(one, other):
    """Whether two shapes agree as far as they are known."""
    return len(one) == len(other) and all(a == b or -1 in (a, b) for a, b in zip(one, other))


def infer_loss(k, slot, out, axis):
    """A loss per row: the shape of ``slot`` with one class. The labels must fit it."""
    shape, label = list(k.shape(slot)), k.shape("Label")
    reduced = shape[:axis] + [1] + shape[axis + 1:]
    if k.attr("soft_label"):
        if not same_shape(label, shape):
            k.fail(f"soft_label: expected Label in the shape {shape} of {slot}, got {list(label)}")
        if k.dtype("Label") != k.dtype(slot):
            k.fail(f"soft_label: expected Label of {k.dtype(slot)}, got {k.dtype('Label')}")
    else:
        if not same_shape(label, reduced) and not same_shape(label, shape[:axis] + shape[axis + 1:]):
            k.fail(f"expected Label in the shape {reduced} (a class number for each row of {slot} {shape}), "
                   f"got {list(label)}; probabilities per class need soft_label=True")
        if k.dtype("Label").kind not in "iu":
            k.fail(f"expected Label of integers, got {k.dtype('Label')}; "
                   f"probabilities per class need soft_label=True")
    k.set(out, reduced, k.dtype(slot))


def label_check(k, classes):
    """The Check of labels, each of which names a class or is ``ignore_index``."""
    ignored = k.attr("ignore_index")
    return Check(k, classes, lambda wrong, position: (
        f"label {wrong} at position {position} names no class: expected 0 .. {classes - 1} or ignore_index {ignored}"),
        spared=ignored)


@op("softmax", "X", attrs={"axis": -1}, grad_reads="Out", inplace={"Out": "X"},
    grad_inplace={"X@GRAD": "Out@GRAD"})
class Softmax:
    """e^x as a share of its sum over a dimension."""

    def infer(k):
        class_axis(k, "X")
        k.set("Out", k.shape("X"))

    def run(k):
        return _two_arrays(k, kernels.softmax)

    def grad(k):
        """One kernel, from the output alone."""
        return _gradient(k, kernels.softmax_backward)


@op("log_softmax", "X", attrs={"axis": -1}, grad_reads="Out", inplace={"Out": "X"},
    grad_inplace={"X@GRAD": "Out@GRAD"})
class LogSoftmax:
    """The logarithm of softmax, without computing softmax first."""

    infer = Softmax.infer

    def run(k):
        return _two_arrays(k, kernels.log_softmax)

    def grad(k):
        """One kernel, from the output alone."""
        return _gradient(k, kernels.log_softmax_backward)


def _two_arrays(k, kernel):
    axis = class_axis(k, "X")
    x, out = by_class(k["X"], axis), by_class(k["Out"], axis)
    run = kernel.pick(x)
    return lambda: run(x, out)


def _gradient(k, kernel):
    axis = class_axis(k, "Out")
    out, dout, dx = (by_class(k[slot], axis) for slot in ("Out", "Out@GRAD", "X@GRAD"))
    run = kernel.pick(out)
    return lambda: run(out, dout, dx)


@op("softmax_with_cross_entropy", "Logits Label", "Softmax Loss",
    attrs={"soft_label": False, "ignore_index": -100, "axis": -1, "numeric_stable_mode": True},
    grad_reads="Softmax Label", grad_inplace={"Logits@GRAD": "Softmax"}, no_grad="Label")
class SoftmaxWithCrossEntropy:
    """Softmax, and minus the logarithm of the labelled class's (or of all classes by their labels' weights)."""

    def infer(k):
        """Softmax as the logits; one loss per row."""
        axis = class_axis(k, "Logits")
        k.set("Softmax", k.shape("Logits"))
        infer_loss(k, "Logits", "Loss", axis)

    def run(k):
        """One kernel; the loss comes from the logits, so it is exact where a probability is tiny."""
        axis = class_axis(k, "Logits")
        shape = k.shape("Logits")
        logits, out = by_class(k["Logits"], axis), by_class(k["Softmax"], axis)
        loss = by_row(k["Loss"], shape, axis)
        if k.attr("soft_label"):
            targets = by_class(k["Label"], axis)
            run = kernels.soft_cross_entropy.pick(logits)
            return lambda: run(logits, targets, out, loss)
        labels, ignored = by_row(k["Label"], shape, axis), k.attr("ignore_index")
        run = partial(kernels.softmax_cross_entropy.pick(logits), logits, labels, out, loss, ignored)
        return label_check(k, shape[axis]).around(run, labels)

    def grad(k):
        """(softmax - label) times the loss's gradient, and softmax's own where its output is used too."""
        axis = class_axis(k, "Softmax")
        out, dlogits = by_class(k["Softmax"], axis), by_class(k["Logits@GRAD"], axis)
        given = k["Softmax@GRAD"]
        if given is None:
            return _loss_gradient(k, out, dlogits, axis)
        given, own, xp = by_class(given, axis), k.scratch(out.shape, out.dtype), k.xp
        backward = kernels.softmax_backward.pick(out)
        if k["Loss@GRAD"] is None:
            return lambda: backward(out, given, dlogits)
        rest = _loss_gradient(k, out, dlogits, axis)
        return lambda: (backward(out, given, own), rest(), xp.add(dlogits, own, dlogits))


def _loss_gradient(k, out, dlogits, axis):
    shape = k.shape("Softmax")
    dloss = by_row(k["Loss@GRAD"], shape, axis)
    if k.attr("soft_label"):
        targets = by_class(k["Label"], axis)
        run = kernels.soft_cross_entropy_backward.pick(out)
        return lambda: run(out, targets, dloss, dlogits)
    labels, ignored = by_row(k["Label"], shape, axis), k.attr("ignore_index")
    run = kernels.softmax_cross_entropy_backward.pick(out)
    return lambda: run(out, labels, dloss, dlogits, ignored)
