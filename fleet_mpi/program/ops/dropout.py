"""Dropout: random elements set to zero while training."""

from fleet_mpi.kernels.reference.dropout import apply_mask
from fleet_mpi.kernels.reference.random import bernoulli_mask
from fleet_mpi.program.engine.randomness import op_stream
from fleet_mpi.program.graph.registry import op

FLOOR = -1.0507009873554805 * 1.6732632423543772  # what selu tends to: alpha dropout's dropped elements

WAYS = ("downgrade_in_infer", "upscale_in_train")


def scale_of(k):
    """What a kept element is multiplied by: while training or testing, in either way of dropping."""
    dropped = float(k.attr("dropout_prob"))
    upscale = k.attr("dropout_implementation") == "upscale_in_train"
    if k.attr("is_test"):
        return 1.0 if upscale else 1.0 - dropped
    if not upscale:
        return 1.0
    return 1.0 / (1.0 - dropped) if dropped < 1.0 else 0.0


@op("dropout", "X", "Out Mask?", grad_reads="Mask", inplace={"Out": "X"}, grad_inplace={"X@GRAD": "Out@GRAD"},
    attrs={"dropout_prob": 0.5, "is_test": False, "seed": 0, "fix_seed": False,
           "dropout_implementation": "downgrade_in_infer"})
class Dropout:
    """X times Mask, which is 0 with probability ``dropout_prob``; drawn by (seed, run), so a step can be replayed.

    With ``fix_seed`` the same elements are dropped at every run.
    """

    def infer(k):
        """As X; the mask in bytes."""
        dropped, way = k.attr("dropout_prob"), k.attr("dropout_implementation")
        if not 0.0 <= dropped <= 1.0:
            k.fail(f"dropout_prob: expected a probability in [0, 1], got {dropped!r}")
        if way not in WAYS:
            k.fail(f"dropout_implementation: expected one of {WAYS}, got {way!r}")
        k.set("Out", k.shape("X"))
        k.set("Mask", k.shape("X"), "uint8")

    def run(k):
        """Draw the mask, then apply it; when testing only scale."""
        x, out, scale, xp = k["X"].reshape(-1), k["Out"].reshape(-1), scale_of(k), k.xp
        mask = k["Mask"] if k.has("Mask") else k.scratch(k.shape("X"), "uint8")
        mask = mask.reshape(-1)
        if k.attr("is_test"):
            return lambda: (mask.fill(1), xp.multiply(x, scale, out))
        seed, fixed = k.attr("seed"), k.attr("fix_seed")
        key = k.random_key(seed)
        stream = (lambda: 0) if fixed else op_stream(k, seed)
        draw, apply, keep = bernoulli_mask.pick(mask), apply_mask.pick(x), 1.0 - float(k.attr("dropout_prob"))
        return lambda: (draw(mask, key, stream(), 0, keep), apply(x, mask, scale, out))

    def grad(k):
        """The same mask and scale."""
        dout, dx, mask, scale = k["Out@GRAD"].reshape(-1), k["X@GRAD"].reshape(-1), k["Mask"], scale_of(k)
        if mask is None:
            k.fail("needs the Mask that the forward op drew: give it that output")
        mask, apply = mask.reshape(-1), apply_mask.pick(dout)
        return lambda: apply(dout, mask, scale, dx)


@op("alpha_dropout", "X", "Out Mask?", grad_reads="Mask", inplace={"Out": "X"}, grad_inplace={"X@GRAD": "Out@GRAD"},
    attrs={"dropout_prob": 0.5, "is_test": False, "seed": 0, "fix_seed": False})
class AlphaDropout:
    """Dropped elements become selu's lowest value; all are then scaled and shifted back to mean 0 and variance 1."""

    def infer(k):
        """As X; the mask in bytes."""
        if not 0.0 <= k.attr("dropout_prob") <= 1.0:
            k.fail(f"dropout_prob: expected a probability in [0, 1], got {k.attr('dropout_prob')!r}")
        k.set("Out", k.shape("X"))
        k.set("Mask", k.shape("X"), "uint8")

    def run(k):
        """Draw the mask, then (X - floor) mask scale + the rest; when testing only copy."""
        x, out, xp = k["X"].reshape(-1), k["Out"].reshape(-1), k.xp
        mask = (k["Mask"] if k.has("Mask") else k.scratch(k.shape("X"), "uint8")).reshape(-1)
        if k.attr("is_test"):
            return lambda: (mask.fill(1), xp.copyto(out, x))
        seed, dropped, scale = k.attr("seed"), float(k.attr("dropout_prob")), alpha_scale(k)
        key, stream = k.random_key(seed), (lambda: 0) if k.attr("fix_seed") else op_stream(k, seed)
        rest = scale * FLOOR * (1 - dropped)
        draw, apply = bernoulli_mask.pick(mask), apply_mask.pick(x)

        def run():
            draw(mask, key, stream(), 0, 1.0 - dropped)
            xp.subtract(x, FLOOR, out)
            apply(out, mask, scale, out)
            xp.add(out, rest, out)
        return run

    def grad(k):
        """The same mask and scale."""
        dout, dx, mask = k["Out@GRAD"].reshape(-1), k["X@GRAD"].reshape(-1), k["Mask"]
        if mask is None:
            k.fail("needs the Mask that the forward op drew: give it that output")
        mask, apply, scale = mask.reshape(-1), apply_mask.pick(dout), alpha_scale(k)
        return lambda: apply(dout, mask, scale, dx)


def alpha_scale(k):
    """What keeps the variance at 1; 0 where everything is dropped."""
    dropped = float(k.attr("dropout_prob"))
    if k.attr("is_test"):
        return 1.0
    return ((1 - dropped) * (1 + dropped * FLOOR ** 2)) ** -0.5 if dropped < 1.0 else 0.0
