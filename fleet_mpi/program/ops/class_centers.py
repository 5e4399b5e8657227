"""Center loss: the distance of features from the center of their class, which follows them."""

from fleet_mpi.kernels.reference import rows as row_kernels
from fleet_mpi.program.engine.outside import id_check
from fleet_mpi.program.graph.registry import op


@op("center_loss", "X Label Centers CenterUpdateRate", "SampleCenterDiff Loss CentersOut",
    attrs={"cluster_num": 1, "need_update": True}, grad_reads="SampleCenterDiff",
    no_grad="Label Centers CenterUpdateRate")
class CenterLoss:
    """|x - center|^2 / 2 of each row; with ``need_update`` centers then move by the rate times the sum of their rows'
    differences over one more than their number. CentersOut is the variable of Centers again."""

    def infer(k):
        rows, *rest = k.shape("X")
        # Only a run can tell: examples declare batches of one dimension more than they mean.
        if k.concrete and list(k.shape("Centers")) != [k.attr("cluster_num"), *rest]:
            k.fail(f"expected Centers {[k.attr('cluster_num'), *rest]}, got {list(k.shape('Centers'))}")
        k.set("SampleCenterDiff", [rows, *rest], lod=())
        k.set("Loss", [rows, 1], lod=())
        k.set("CentersOut", k.shape("Centers"), lod=())

    def run(k):
        """Differences, their squares, and the step of the centers."""
        x, labels, centers, out, xp = k["X"], k["Label"].reshape(-1), k["Centers"], k["CentersOut"], k.xp
        diff, loss, rate = k["SampleCenterDiff"], k["Loss"].reshape(-1), k["CenterUpdateRate"].reshape(-1)
        moves, count = k.attr("need_update"), centers.shape[0]
        check = id_check(k, count, "the classes")

        def run():
            check(labels)
            xp.subtract(x, centers[labels], diff)
            xp.sum(diff * diff, axis=1, out=loss)
            xp.multiply(loss, 0.5, loss)
            if out is not centers:
                xp.copyto(out, centers)
            if moves:
                total = xp.zeros(centers.shape, centers.dtype)
                row_kernels.add_at(total, labels, diff)
                seen = 1.0 + xp.bincount(xp.clip(labels, 0, count - 1), minlength=count)
                xp.add(out, total * (rate / seen.astype(total.dtype)).reshape(-1, 1), out)
        return run

    def grad(k):
        """The difference; centers are not learnt by gradients."""
        dloss, diff, dx, xp = k["Loss@GRAD"].reshape(-1, 1), k["SampleCenterDiff"], k["X@GRAD"], k.xp
        return lambda: xp.multiply(diff, dloss, dx)
