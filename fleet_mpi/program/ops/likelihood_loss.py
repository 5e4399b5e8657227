"""The negative log likelihood of class numbers, from logarithms of probabilities."""

from fleet_mpi.program.engine.outside import id_check
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.manipulation import product


@op("nll_loss", "X Label Weight?", "Out Total_weight", no_grad="Weight", grad_reads="Label Weight Total_weight",
    attrs={"ignore_index": -100, "reduction": "mean"})
class NllLoss:
    """- X at the label's class, times the class's weight; summed, divided by the sum of weights, or one by one."""

    def infer(k):
        """[1], or with reduction "none" as Label."""
        x, label = k.shape("X"), k.shape("Label")
        if k.attr("reduction") not in ("mean", "sum", "none"):
            k.fail(f"reduction: expected 'mean', 'sum' or 'none', got {k.attr('reduction')!r}")
        if len(x) < 2 or len(label) != len(x) - 1:
            k.fail(f"expected X [rows, classes, ...] and Label [rows, ...], got {list(x)} and {list(label)}")
        k.set("Out", label if k.attr("reduction") == "none" else [1], k.dtype("X"),
              lod=None if k.attr("reduction") == "none" else ())
        k.set("Total_weight", [1], k.dtype("X"), lod=())

    def run(k):
        x, out, total, xp = folded(k["X"]), k["Out"], k["Total_weight"], k.xp
        weigh, reduction = class_weights(k, x.shape[1], x.dtype), k.attr("reduction")

        def run():
            classes, weights = weigh()
            losses = xp.take_along_axis(x, classes, axis=1)[:, 0] * -weights
            total[...] = xp.sum(weights)
            if reduction == "none":
                xp.copyto(out, losses.reshape(out.shape))
            else:
                out[...] = xp.sum(losses)
            if reduction == "mean":
                xp.divide(out, xp.where(total == 0, 1, total), out)
        return run

    def grad(k):
        """- the weight at the label's class, shared as the loss was."""
        dx, dout, total, xp = folded(k["X@GRAD"]), k["Out@GRAD"], k["Total_weight"], k.xp
        weigh, reduction = class_weights(k, dx.shape[1], dx.dtype), k.attr("reduction")

        def run():
            classes, weights = weigh()
            share = dout.reshape(weights.shape) if reduction == "none" else dout
            share = share / xp.where(total == 0, 1, total) if reduction == "mean" else share
            dx.fill(0)
            xp.put_along_axis(dx, classes, (share * -weights)[:, None], axis=1)
        return run


def folded(x):
    """[rows, classes, places]."""
    return x.reshape(x.shape[0], x.shape[1], product(x.shape[2:]))


def class_weights(k, count, dtype):
    """The call that gives the class of each place, [rows, 1, places], and its weight; ignored ones: class 0, weight
    0."""
    ignored, weight, xp = int(k.attr("ignore_index")), k["Weight"], k.xp
    label = k["Label"]
    label = label.reshape(label.shape[0], product(label.shape[1:]))
    check = id_check(k, count, "the classes", spared=ignored)

    def run():
        check(label)
        counted = label != ignored
        classes = xp.where(counted, label, 0)
        kept = counted.astype(dtype)
        return classes[:, None], kept if weight is None else weight[classes] * kept
    return run
