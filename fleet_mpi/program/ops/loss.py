"""Losses of probabilities, of single logits, and of differences, row by row or element by element."""

from functools import partial

from fleet_mpi.kernels.reference import loss as kernels
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.softmax import infer_loss, label_check, same_shape

_LEAST = 1e-37  # stands for a probability of zero in divisions: the smallest power of ten float32 holds well


def infer_as(slot, *others, out="Out"):
    """A shape rule: ``out`` is as ``slot``, and so are the other inputs."""
    def infer(k):
        for other in others:
            if k.has(other) and (not same_shape(k.shape(other), k.shape(slot)) or k.dtype(other) != k.dtype(slot)):
                k.fail(f"expected {other} as {slot}, {k.dtype(slot)} {list(k.shape(slot))}, "
                       f"got {k.dtype(other)} {list(k.shape(other))}")
        k.set(out, k.shape(slot))
    return infer


def lines(k, *slots):
    """The values of slots as 1-D views; None where a slot is empty."""
    return [None if k[slot] is None else k[slot].reshape(-1) for slot in slots]


def as_rows(array):
    """A view as [rows, last dimension]."""
    return array.reshape(-1, array.shape[-1])


@op("cross_entropy2", "X Label", "Y MatchX XShape?", attrs={"ignore_index": -100}, grad_reads="Label MatchX",
    no_grad="Label")
class CrossEntropy2:
    """Minus the logarithm of each row's probability of its label, which is kept in MatchX."""

    def infer(k):
        infer_loss(k, "X", "Y", len(k.shape("X")) - 1)
        k.set("MatchX", tuple(k.shape("X")[:-1]) + (1,), k.dtype("X"))

    def run(k):
        (labels, match, loss), x = lines(k, "Label", "MatchX", "Y"), as_rows(k["X"])
        return _labelled(k, x, labels, match, loss)

    def grad(k):
        """-1 / probability at the label."""
        match, labels, dloss = lines(k, "MatchX", "Label", "Y@GRAD")
        dx, ignored = as_rows(k["X@GRAD"]), k.attr("ignore_index")
        run = kernels.cross_entropy_backward.pick(match)
        return lambda: run(match, labels, dloss, dx, ignored)


def _labelled(k, x, labels, match, loss):
    run = partial(kernels.cross_entropy.pick(x), x, labels, match, loss, k.attr("ignore_index"))
    return label_check(k, x.shape[1]).around(run, labels)


@op("cross_entropy", "X Label", "Y", attrs={"soft_label": False, "ignore_index": -100}, grad_reads="X Label",
    no_grad="Label")
class CrossEntropy:
    """Minus the logarithm of probabilities: of the label's, or of all by the label's weights."""

    def infer(k):
        infer_loss(k, "X", "Y", len(k.shape("X")) - 1)

    def run(k):
        """One kernel, or for soft labels one product with the logarithms."""
        x, (loss,) = as_rows(k["X"]), lines(k, "Y")
        if not k.attr("soft_label"):
            return _labelled(k, x, k["Label"].reshape(-1), k.scratch(loss.shape, loss.dtype), loss)
        targets, logs, xp = as_rows(k["Label"]), k.scratch(x.shape, x.dtype), k.xp

        def run():
            xp.log(xp.maximum(x, _LEAST, out=logs), logs)
            xp.copyto(logs, -kernels.LARGEST, where=x <= 0)
            xp.multiply(logs, targets, logs)
            xp.sum(logs, axis=1, out=loss)
            xp.negative(loss, loss)
        return run

    def grad(k):
        """-label / probability."""
        x, dx, (dloss,) = as_rows(k["X"]), as_rows(k["X@GRAD"]), lines(k, "Y@GRAD")
        xp = k.xp
        if k.attr("soft_label"):
            targets, share = as_rows(k["Label"]), dloss.reshape(-1, 1)
            return lambda: (xp.maximum(x, _LEAST, out=dx), xp.divide(targets, dx, dx), xp.multiply(dx, share, dx),
                            xp.negative(dx, dx))
        labels, ignored = k["Label"].reshape(-1), k.attr("ignore_index")
        match, loss = k.scratch(dloss.shape, x.dtype), k.scratch(dloss.shape, x.dtype)
        find, run = kernels.cross_entropy.pick(x), kernels.cross_entropy_backward.pick(x)
        return lambda: (find(x, labels, match, loss, ignored), run(match, labels, dloss, dx, ignored))


@op("log_loss", "Predicted Labels", "Loss", attrs={"epsilon": 1e-4}, grad_reads="Predicted Labels",
    no_grad="Labels")
class LogLoss:
    """-y log(p + epsilon) - (1 - y) log(1 - p + epsilon)."""

    infer = infer_as("Predicted", "Labels", out="Loss")

    def run(k):
        predicted, labels, loss = lines(k, "Predicted", "Labels", "Loss")
        run, epsilon = kernels.log_loss.pick(predicted), k.attr("epsilon")
        return lambda: run(predicted, labels, loss, epsilon)

    def grad(k):
        predicted, labels, dloss, dpredicted = lines(k, "Predicted", "Labels", "Loss@GRAD", "Predicted@GRAD")
        run, epsilon = kernels.log_loss_backward.pick(predicted), k.attr("epsilon")
        return lambda: run(predicted, labels, dloss, dpredicted, epsilon)


@op("sigmoid_cross_entropy_with_logits", "X Label", attrs={"ignore_index": -100, "normalize": False},
    grad_reads="X Label", no_grad="Label")
class SigmoidCrossEntropyWithLogits:
    """The cross entropy of sigmoid(x) and a label in [0, 1], for every element by itself."""

    infer = infer_as("X", "Label")

    def run(k):
        """One kernel, and a division where the sum shall be a mean."""
        x, labels, out = lines(k, "X", "Label", "Out")
        run, ignored = kernels.sigmoid_cross_entropy.pick(x), k.attr("ignore_index")
        return _normalized(k, labels, out, lambda: run(x, labels, out, ignored))

    def grad(k):
        """sigmoid(x) - label."""
        x, labels, dout, dx = lines(k, "X", "Label", "Out@GRAD", "X@GRAD")
        run, ignored = kernels.sigmoid_cross_entropy_backward.pick(x), k.attr("ignore_index")
        return _normalized(k, labels, dx, lambda: run(x, labels, dout, dx, ignored))


def _normalized(k, labels, out, run):
    if not k.attr("normalize"):
        return run
    xp, ignored = k.xp, k.attr("ignore_index")

    def run_and_divide():
        run()
        counted = xp.sum(labels != ignored).astype(out.dtype)
        xp.divide(out, xp.maximum(counted, 1e-5), out)
    return run_and_divide


@op("teacher_student_sigmoid_loss", "X Label", "Y", grad_reads="X Label", no_grad="Label",
    attrs={"soft_max_up_bound": 15.0, "soft_max_lower_bound": -15.0})
class TeacherStudentSigmoidLoss:
    """The cross entropy of sigmoid(x) with a click and, where a teacher gave one, with its score z.

    The label says both: -2 no click, -1 a click; from 0 on z or, with a click, 1 + z.
    """

    infer = infer_as("X", "Label", out="Y")

    def run(k):
        """The part without labels once or twice, minus x times what the labels add up to."""
        (x, labels, y), xp = lines(k, "X", "Label", "Y"), k.xp

        def run():
            whole = xp.maximum(x, 0.0) + xp.log1p(xp.exp(-xp.abs(x)))
            xp.copyto(y, xp.where(labels < 0, whole, 2 * whole) - x * _clicks(xp, labels), casting="same_kind")
        return run

    def grad(k):
        """sigmoid(x) minus the label for each part; nothing beyond the bounds."""
        (x, labels, dy, dx), xp = lines(k, "X", "Label", "Y@GRAD", "X@GRAD"), k.xp
        up, low = k.attr("soft_max_up_bound"), k.attr("soft_max_lower_bound")

        def run():
            share = 1.0 / (1.0 + xp.exp(-xp.clip(x, low, up)))
            slope = xp.where(labels < 0, share, 2 * share) - _clicks(xp, labels)
            xp.copyto(dx, xp.where((x < up) & (x > low), slope * dy, 0.0), casting="same_kind")
        return run


def _clicks(xp, labels):
    """What the labels of both parts add up to."""
    return xp.where(labels < -1, 0.0, xp.where(labels < 0, 1.0, labels))
