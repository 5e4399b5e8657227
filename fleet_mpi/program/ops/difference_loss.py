"""Losses of the difference of two variables: Huber, smooth L1, ranking, divergence; and label smoothing."""

from fleet_mpi.program.engine.outside import id_check
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.loss import as_rows, infer_as


def opposite(k, first, second, write):
    """The call that writes a gradient and, for the operand subtracted, its opposite; either may be unwanted."""
    one, other, xp = k[first], k[second], k.xp
    if other is None:
        return lambda: write(one)
    if one is None:
        return lambda: (write(other), xp.negative(other, other))
    return lambda: (write(one), xp.negative(one, other))


@op("huber_loss", "X Y", "Residual Out", attrs={"delta": 1.0}, grad_reads="Residual")
class HuberLoss:
    """r^2 / 2 for |r| <= delta, else delta (|r| - delta / 2); r = Y - X is kept in Residual."""

    def infer(k):
        infer_as("X", "Y")(k)
        k.set("Residual", k.shape("X"))

    def run(k):
        """With c = |r| cut at delta the loss is c (|r| - c / 2) everywhere."""
        x, y, residual, out, xp = k["X"], k["Y"], k["Residual"], k["Out"], k.xp
        delta, cut = float(k.attr("delta")), k.scratch(k.shape("X"), k.dtype("X"))

        def run():
            xp.subtract(y, x, residual)
            xp.abs(residual, out)
            xp.minimum(out, delta, out=cut)
            xp.multiply(out, cut, out)
            xp.multiply(cut, cut, cut)
            xp.multiply(cut, 0.5, cut)
            xp.subtract(out, cut, out)
        return run

    def grad(k):
        """The residual cut to [-delta, delta]; it grows with Y."""
        residual, dout, xp, delta = k["Residual"], k["Out@GRAD"], k.xp, float(k.attr("delta"))
        return opposite(k, "Y@GRAD", "X@GRAD", lambda out: (
            xp.clip(residual, -delta, delta, out=out), xp.multiply(out, dout, out)))


@op("smooth_l1_loss", "X Y InsideWeight? OutsideWeight?", "Diff Out", attrs={"sigma": 1.0},
    grad_reads="Diff InsideWeight OutsideWeight", no_grad="InsideWeight OutsideWeight")
class SmoothL1Loss:
    """Each row's sum of (s d)^2 / 2 for |d| < 1 / s^2, else |d| - 1 / (2 s^2); d is kept in Diff."""

    def infer(k):
        """[rows, 1]."""
        infer_as("X", "Y", "InsideWeight", "OutsideWeight", out="Diff")(k)
        k.set("Out", (k.shape("X")[0], 1))

    def run(k):
        """With c = |d| cut at 1 / s^2 the loss is s^2 c (|d| - c / 2) everywhere."""
        x, y, diff, xp = k["X"], k["Y"], k["Diff"], k.xp
        inside, outside = k["InsideWeight"], k["OutsideWeight"]
        square, total = float(k.attr("sigma")) ** 2, k["Out"].reshape(-1)
        made, cut = k.scratch(diff.shape, diff.dtype), k.scratch(diff.shape, diff.dtype)
        rows = made.reshape(made.shape[0], -1)

        def run():
            xp.subtract(x, y, diff)
            if inside is not None:
                xp.multiply(diff, inside, diff)
            xp.abs(diff, made)
            xp.minimum(made, 1.0 / square, out=cut)
            xp.multiply(made, cut, made)
            xp.multiply(cut, cut, cut)
            xp.multiply(cut, 0.5, cut)
            xp.subtract(made, cut, made)
            xp.multiply(made, square, made)
            if outside is not None:
                xp.multiply(made, outside, made)
            xp.sum(rows, axis=1, out=total)
        return run

    def grad(k):
        """s^2 d cut to [-1, 1], times the weights."""
        diff, xp, square = k["Diff"], k.xp, float(k.attr("sigma")) ** 2
        weights = [weight for weight in (k["InsideWeight"], k["OutsideWeight"]) if weight is not None]
        share = k["Out@GRAD"].reshape((-1,) + (1,) * (diff.ndim - 1))

        def write(out):
            xp.multiply(diff, square, out)
            xp.clip(out, -1.0, 1.0, out=out)
            for weight in weights:
                xp.multiply(out, weight, out)
            xp.multiply(out, share, out)
        return opposite(k, "X@GRAD", "Y@GRAD", write)


@op("rank_loss", "Label Left Right", grad_reads="Label Left Right", no_grad="Label")
class RankLoss:
    """RankNet: log(1 + e^o) - label o, where o = Left - Right."""

    infer = infer_as("Left", "Right", "Label")

    def run(k):
        """logaddexp, so that a large o does not overflow."""
        label, left, right, out, xp = k["Label"], k["Left"], k["Right"], k["Out"], k.xp
        ahead = k.scratch(out.shape, out.dtype)
        return lambda: (xp.subtract(left, right, ahead), xp.logaddexp(ahead, 0.0, out),
                        xp.multiply(ahead, label, ahead), xp.subtract(out, ahead, out))

    def grad(k):
        """(sigmoid(o) - label) for Left; sigmoid(o) = (1 + tanh(o / 2)) / 2."""
        label, left, right, dout, xp = k["Label"], k["Left"], k["Right"], k["Out@GRAD"], k.xp

        def write(out):
            xp.subtract(left, right, out)
            xp.multiply(out, 0.5, out)
            xp.tanh(out, out)
            xp.add(out, 1.0, out)
            xp.multiply(out, 0.5, out)
            xp.subtract(out, label, out)
            xp.multiply(out, dout, out)
        return opposite(k, "Left@GRAD", "Right@GRAD", write)


@op("margin_rank_loss", "X1 X2 Label", "Activated Out", attrs={"margin": 0.0}, grad_reads="Activated Label",
    no_grad="Label")
class MarginRankLoss:
    """max(0, margin - label (X1 - X2)); Activated is 1 where that is positive."""

    def infer(k):
        infer_as("X1", "X2", "Label")(k)
        k.set("Activated", k.shape("X1"))

    def run(k):
        """Step by step in the output."""
        x1, x2, label, out, active, xp = k["X1"], k["X2"], k["Label"], k["Out"], k["Activated"], k.xp
        margin = float(k.attr("margin"))
        return lambda: (xp.subtract(x2, x1, out), xp.multiply(out, label, out), xp.add(out, margin, out),
                        xp.maximum(out, 0.0, out=out), xp.copyto(active, out > 0))

    def grad(k):
        """-label where active, for X1."""
        active, label, dout, xp = k["Activated"], k["Label"], k["Out@GRAD"], k.xp
        return opposite(k, "X2@GRAD", "X1@GRAD", lambda out: (
            xp.multiply(active, label, out), xp.multiply(out, dout, out)))


@op("kldiv_loss", "X Target", "Loss", attrs={"reduction": "mean"}, grad_reads="Target", no_grad="Target")
class KlDivLoss:
    """target (log(target) - X) where target > 0, X being a logarithm already; summed or averaged as asked."""

    def infer(k):
        """One number, or as X without a reduction."""
        infer_as("X", "Target", out="Loss")(k)
        reduction = k.attr("reduction")
        if reduction not in ("none", "mean", "sum", "batchmean"):
            k.fail(f"reduction: expected none, mean, sum or batchmean, got {reduction!r}")
        if reduction != "none":
            k.set("Loss", [1], lod=())

    def run(k):
        """Logarithms of the positive targets only."""
        x, target, loss, xp = k["X"], k["Target"], k["Loss"], k.xp
        share, reduced = _share(k, x.shape), k.attr("reduction") != "none"
        made = k.scratch(x.shape, x.dtype) if reduced else loss
        flat, total = made.reshape(-1), loss.reshape(() if reduced else loss.shape)

        def run():
            xp.log(xp.where(target > 0, target, 1.0), made)
            xp.subtract(made, x, made)
            xp.multiply(made, xp.maximum(target, 0.0), made)
            if reduced:
                xp.sum(flat, out=total)
                xp.multiply(total, share, total)
        return run

    def grad(k):
        """-target."""
        target, dloss, dx, xp = k["Target"], k["Loss@GRAD"], k["X@GRAD"], k.xp
        share = -_share(k, target.shape)
        return lambda: (xp.maximum(target, 0.0, out=dx), xp.multiply(dx, dloss, dx), xp.multiply(dx, share, dx))


def _share(k, shape):
    size = 1
    for extent in shape:
        size *= extent
    return 1.0 / {"mean": size, "batchmean": shape[0]}.get(k.attr("reduction"), 1)


@op("label_smooth", "X PriorDist?", attrs={"epsilon": 0.0}, no_grad="PriorDist")
class LabelSmooth:
    """(1 - epsilon) X + epsilon prior; without a prior every class counts the same."""

    def infer(k):
        k.set("Out", k.shape("X"))

    def run(k):
        """A product and a sum."""
        x, prior, out, xp, epsilon = k["X"], k["PriorDist"], k["Out"], k.xp, float(k.attr("epsilon"))
        if prior is None:
            rest = epsilon / x.shape[-1]
            return lambda: (xp.multiply(x, 1.0 - epsilon, out), xp.add(out, rest, out))
        line, rows = prior.reshape(1, -1), as_rows(out)
        return lambda: (xp.multiply(x, 1.0 - epsilon, out), xp.add(rows, line * epsilon, rows))

    def grad(k):
        """(1 - epsilon) dOut."""
        dout, dx, xp, epsilon = k["Out@GRAD"], k["X@GRAD"], k.xp, float(k.attr("epsilon"))
        return lambda: xp.multiply(dout, 1.0 - epsilon, dx)


@op("bpr_loss", "X Label", "Y", grad_reads="X Label", no_grad="Label")
class BprLoss:
    """Bayesian personalised ranking: the mean of log(1 + e^(x_j - x_label)) over all other classes j."""

    def infer(k):
        """[rows, 1]."""
        k.set("Y", tuple(k.shape("X")[:-1]) + (1,), k.dtype("X"))

    def run(k):
        """The label's own term is log 2, taken off the sum."""
        x, labels, loss, xp = as_rows(k["X"]), k["Label"].reshape(-1, 1), k["Y"].reshape(-1), k.xp
        others, check = float(x.shape[1] - 1), id_check(k, x.shape[1], "the classes")

        def run():
            check(labels)
            terms = xp.logaddexp(x - xp.take_along_axis(x, labels, axis=1), 0.0)
            own = xp.take_along_axis(terms, labels, axis=1).reshape(-1)
            xp.divide(terms.sum(axis=1) - own, others, loss)
        return run

    def grad(k):
        """sigmoid(x_j - x_label) for the others, minus their sum for the label."""
        x, labels, xp = as_rows(k["X"]), k["Label"].reshape(-1, 1), k.xp
        dloss, dx = k["Y@GRAD"].reshape(-1, 1), as_rows(k["X@GRAD"])
        classes = xp.arange(x.shape[1]).reshape(1, -1)
        others = float(x.shape[1] - 1)

        def run():
            pull = (xp.tanh((x - xp.take_along_axis(x, labels, axis=1)) * 0.5) + 1.0) * 0.5
            hit = classes == labels
            pull = xp.where(hit, 0.0, pull)
            pull = xp.where(hit, -pull.sum(axis=1, keepdims=True), pull)
            xp.multiply(pull, dloss / others, dx)
        return run
