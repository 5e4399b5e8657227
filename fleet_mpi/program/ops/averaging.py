"""Ops that keep averages of parameters over the steps, and that turn what is kept into the average."""

from fleet_mpi import arrays
from fleet_mpi.program.graph.registry import op

# Sums are moved on after so many steps, so that small terms are not lost in a large one; the original's number.
MOST_IN_ONE_SUM = 16384


@op("ema_decay", "DecayPow ThresSteps?", "Decay DecayPowOut", attrs={"decay": 0.999})
class EmaDecay:
    """This step's decay, min(decay, (1 + t) / (10 + t)) where ThresSteps gives t, and the product of all so far."""

    def infer(k):
        k.set("Decay", [1], "float64", lod=())
        k.set("DecayPowOut", [1], "float64", lod=())

    def run(k):
        """A few operations on one number."""
        xp, power, out, product = k.xp, k["DecayPow"], k["Decay"], k["DecayPowOut"]
        steps, decay = k["ThresSteps"], float(k.attr("decay"))

        def run():
            if steps is None:
                out.fill(decay)
            else:
                now = steps.astype("float64")
                out[...] = xp.minimum((1.0 + now) / (10.0 + now), decay)
            xp.multiply(power, out, out=product)
        return run


@op("ema_update", "Param Ema Decay", "EmaOut")
class EmaUpdate:
    """Decay * Ema + (1 - Decay) * Param."""

    def infer(k):
        k.set("EmaOut", k.shape("Ema"), k.dtype("Ema"), lod=())

    def run(k):
        xp, param, ema, out, decay = k.xp, k["Param"], k["Ema"], k["EmaOut"], k["Decay"]
        scratch = k.scratch(param.shape, param.dtype)

        def run():
            xp.multiply(param, (1.0 - decay).astype(param.dtype), out=scratch)
            xp.multiply(ema, decay.astype(param.dtype), out=out)
            xp.add(out, scratch, out=out)
        return run


@op("ema_value", "Param Ema DecayPow", "Out")
class EmaValue:
    """Ema / (1 - DecayPow), which makes up for the zeros it began with; Param before the first update."""

    def infer(k):
        k.set("Out", k.shape("Param"), k.dtype("Param"), lod=())

    def run(k):
        xp, param, ema, out, power = k.xp, k["Param"], k["Ema"], k["Out"], k["DecayPow"]

        def run():
            if arrays.to_host(power)[0] == 1.0:
                xp.copyto(out, param)
            else:
                xp.divide(ema, (1.0 - power).astype(ema.dtype), out=out)
        return run


SUMS = ("sum_1", "sum_2", "sum_3")
COUNTS = ("num_accumulates", "old_num_accumulates", "num_updates")


@op("average_accumulates", " ".join(["param", *(f"in_{name}" for name in SUMS + COUNTS)]),
    " ".join(f"out_{name}" for name in SUMS + COUNTS),
    attrs={"average_window": 0.0, "min_average_window": 10000, "max_average_window": 10000})
class AverageAccumulates:
    """Sums of a parameter over a window of steps that grows with training, and over the window before."""

    def infer(k):
        for name in SUMS + COUNTS:
            k.set("out_" + name, k.shape("in_" + name), k.dtype("in_" + name), lod=())

    def run(k):
        """The counters are read on the host."""
        xp, param = k.xp, k["param"]
        moved = [(k["in_" + name], k["out_" + name]) for name in SUMS + COUNTS]
        held = [out for _, out in moved]
        rate, least, most = (k.attr(name) for name in ("average_window", "min_average_window", "max_average_window"))

        def run():
            for source, target in moved:
                if target is not source:
                    xp.copyto(target, source)
            accumulate(xp, param, held, lambda updates: max(least, min(most, updates * rate)))
        return run


def accumulate(xp, param, held, window):
    """One step: add, move a long sum on, begin a new window where the old one is full."""
    first, second, third, count, old_count, updates = held
    updates += 1
    count += 1
    first += param
    now, so_far = int(arrays.to_host(updates)[0]), int(arrays.to_host(count)[0])
    if now % MOST_IN_ONE_SUM == 0:
        second += first
        first.fill(0)
    if so_far >= window(now):
        xp.add(first, second, out=third)
        first.fill(0)
        second.fill(0)
        old_count.fill(so_far)
        count.fill(0)


@op("average_value", "param sum_1 sum_2 sum_3 num_accumulates old_num_accumulates", "Out")
class AverageValue:
    """The sums over their number of steps; the parameter where none was taken."""

    def infer(k):
        k.set("Out", k.shape("param"), k.dtype("param"), lod=())

    def run(k):
        xp, param, out = k.xp, k["param"], k["Out"]
        sums, counts = [k[name] for name in SUMS], [k[name] for name in COUNTS[:2]]
        total = k.scratch(param.shape, param.dtype)

        def run():
            steps = sum(int(arrays.to_host(one)[0]) for one in counts)
            if not steps:
                xp.copyto(out, param)
                return
            xp.add(sums[0], sums[1], out=total)
            xp.add(total, sums[2], out=total)
            xp.divide(total, float(steps), out=out)
        return run
