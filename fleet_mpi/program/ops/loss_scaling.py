"""Ops of loss scaling: are all gradients finite, and by how much shall the next loss be scaled."""

from fleet_mpi import arrays
from fleet_mpi.kernels.reference.unscaling import next_scale, unscale_all, zero_all_if
from fleet_mpi.program.graph.registry import op


def infer_gradients(k):
    """Each Out as its X."""
    for i in range(k.count("X")):
        k.set("Out", k.shape("X", i), k.dtype("X", i), lod=(), index=i, kind=k.meta("X", i).kind)


def numbers(k):
    """The arrays of X and of Out, the values in case of Rows, which are changed where they lie."""
    arrays_in, arrays_out = [], []
    for i, (x, out) in enumerate(zip(k.all("X"), outputs(k))):
        if isinstance(x, arrays.Rows):
            if k.name("X", i) != k.name("Out", i):
                k.put("Out", x, i)
            x = out = x.values
        arrays_in.append(x)
        arrays_out.append(out)
    return arrays_in, arrays_out


def outputs(k):
    """The arrays of Out; None for Rows, which have none laid out."""
    return [k.frame.values.get(k.name("Out", i)) for i in range(k.count("Out"))]


@op("check_finite_and_unscale", "X* Scale", "Out* FoundInfinite", effect=True)
class CheckFiniteAndUnscale:
    """Out = X / Scale; FoundInfinite tells whether some element of some X is NaN or infinite."""

    def infer(k):
        """As X, and one flag."""
        infer_gradients(k)
        k.set("FoundInfinite", [1], "bool", lod=())

    def run(k):
        """Every gradient looked at and divided."""
        return unscale_all(k["FoundInfinite"], k["Scale"], *numbers(k))


@op("update_loss_scaling", "X* FoundInfinite PrevLossScaling InGoodSteps InBadSteps",
    "Out* LossScaling OutGoodSteps OutBadSteps", effect=True,
    attrs={"incr_every_n_steps": 1000, "decr_every_n_nan_or_inf": 2, "incr_ratio": 2.0, "decr_ratio": 0.8})
class UpdateLossScaling:
    """After enough finite steps in a row the scale grows, after enough others it falls (not below 1).

    Gradients of a step that is not finite become zero.
    """

    def infer(k):
        infer_gradients(k)
        for source, target in (("PrevLossScaling", "LossScaling"), ("InGoodSteps", "OutGoodSteps"),
                               ("InBadSteps", "OutBadSteps")):
            k.set(target, k.shape(source), k.dtype(source), lod=())

    def run(k):
        """Nothing is read on the host, unless the arrays lie there."""
        found = k["FoundInfinite"]
        zero_all = zero_all_if(found, *numbers(k))
        before = [k[slot] for slot in ("PrevLossScaling", "InGoodSteps", "InBadSteps")]
        after = [k[slot] for slot in ("LossScaling", "OutGoodSteps", "OutBadSteps")]
        settings = [k.attr(name) for name in ("incr_every_n_steps", "decr_every_n_nan_or_inf", "incr_ratio",
                                              "decr_ratio")]

        def run():
            next_scale(found, *before, *after, *settings)
            zero_all()
        return run
