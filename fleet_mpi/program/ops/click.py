"""Ops of click models: normalising by running sums, counts of shows and clicks, filtering by tags, hashing ids."""

import numpy as np

from fleet_mpi.kernels.reference.xxhash import hash_rows
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.sequence import forward_meta, last_level

STATISTICS = ("BatchSize", "BatchSum", "BatchSquareSum")
NOT_SHOWN = 1e-7  # a slot whose first number is within this of 0 was not shown, as in the original


@op("data_norm", "X BatchSize BatchSum BatchSquareSum scale_w? bias?",
    "Y Means Scales BatchSizeOut? BatchSumOut? BatchSquareSumOut?", grad_reads="X Means Scales scale_w",
    no_grad="BatchSize BatchSum BatchSquareSum",
    attrs={"epsilon": 1e-4, "data_layout": "NCHW", "slot_dim": -1, "summary_decay_rate": 0.9999999,
           "enable_scale_and_shift": False, "sync_stats": False, "is_test": False})
class DataNorm:
    """(x - sum / size) * sqrt(size / square sum) for each column, by sums over everything seen so far.

    In a program that trains, the batch is then added to the sums, which decay. The original leaves that to its
    parameter server (and to its GPU kernel); an optimizer's step, which it takes elsewhere, would subtract the batch.
    With ``slot_dim`` columns form slots of so many: one whose first number is 0 was not shown, and stays 0.
    """

    def infer(k):
        rows, columns = k.shape("X")
        for slot in (*STATISTICS, "scale_w", "bias"):
            if k.has(slot) and columns > 0 and k.meta(slot).size != columns:
                k.fail(f"expected {slot} of {columns} numbers, one for each column of X, got {list(k.shape(slot))}")
        k.set("Y", k.shape("X"))
        for slot in ("Means", "Scales"):
            k.set(slot, [columns], lod=())
        for slot in STATISTICS:
            k.set(slot + "Out", k.shape(slot), k.dtype(slot), lod=())

    def run(k):
        """Two divisions a column, then one pass; then the sums."""
        x, y, means, scales, xp = k["X"], k["Y"], k["Means"], k["Scales"], k.xp
        size, total, squares = (k[slot] for slot in STATISTICS)
        weight, bias, shown = k["scale_w"], k["bias"], _shown(k)
        update = _statistics_call(k, shown)

        def run():
            xp.divide(total, size, means)
            xp.sqrt(size / squares, scales)
            xp.multiply(x - means, scales, y)
            if weight is not None:
                xp.multiply(y, weight, y)
                xp.add(y, bias, y)
            if k.attr("slot_dim") > 0:
                xp.multiply(y, shown(), y)
            update()
        return run

    def grad(k):
        """The sums are no variables of the loss: they get none."""
        x, means, scales, weight, dy, xp = k["X"], k["Means"], k["Scales"], k["scale_w"], k["Y@GRAD"], k.xp
        dx, dweight, dbias, shown = k["X@GRAD"], k["scale_w@GRAD"], k["bias@GRAD"], _shown(k)

        def run():
            seen = dy * shown() if k.attr("slot_dim") > 0 else dy
            if dx is not None:
                xp.multiply(seen, scales if weight is None else scales * weight, dx)
            if dweight is not None:
                xp.sum(seen * (x - means) * scales, axis=0, out=dweight)
            if dbias is not None:
                xp.sum(seen, axis=0, out=dbias)
        return run


def _shown(k):
    """A function that gives 1 where a slot was shown and 0 elsewhere; all 1 without slots."""
    x, width, xp = k["X"], k.attr("slot_dim"), k.xp
    if width <= 0:
        return lambda: xp.ones((1, 1), x.dtype)
    if x.shape[1] % width:
        k.fail(f"slot_dim: expected a divisor of the {x.shape[1]} columns, got {width}")
    return lambda: xp.repeat((xp.abs(x[:, ::width]) > NOT_SHOWN).astype(x.dtype), width, axis=1)


def _statistics_call(k, shown):
    """The call that adds a batch to the sums; nothing where the program does not train."""
    trains = any(one.trains for block in k.program.blocks for one in block.ops)
    if k.attr("is_test") or not trains or not k.has("BatchSizeOut"):
        return lambda: None
    x, means, xp, decay = k["X"], k["Means"], k.xp, k.attr("summary_decay_rate")
    epsilon, states = k.attr("epsilon"), [(k[slot], k[slot + "Out"]) for slot in STATISTICS]

    def run():
        counted = xp.broadcast_to(shown(), x.shape)
        size = counted.sum(axis=0)
        parts = size, (x * counted).sum(axis=0), ((x - means) ** 2 * counted).sum(axis=0) + size * epsilon
        for (old, new), part in zip(states, parts):
            xp.copyto(new, old * decay + part, casting="same_kind")
    return run


@op("cvm", "X CVM", "Y", attrs={"use_cvm": True}, grad_reads="CVM", no_grad="CVM")
class Cvm:
    """Rows that begin with shows and clicks: with their logs, log(1 + show) and log(1 + click) minus it; or without.

    The gradient of these two columns is, as in the original, not one: it hands the counts of CVM to the table.
    """

    def infer(k):
        """As X, or two columns less."""
        rows, columns = k.shape("X")
        if 0 <= columns < 2 + (not k.attr("use_cvm")):
            k.fail(f"expected X with shows, clicks and more in each row, got {list(k.shape('X'))}")
        k.set("Y", [rows, columns if k.attr("use_cvm") else columns - 2])

    def run(k):
        """A copy, and two logarithms."""
        x, y, xp = k["X"], k["Y"], k.xp
        if not k.attr("use_cvm"):
            return lambda: xp.copyto(y, x[:, 2:])

        def run():
            xp.copyto(y, x)
            xp.log(x[:, :2] + 1, y[:, :2])
            y[:, 1] -= y[:, 0]
        return run

    def grad(k):
        """A copy; the first two columns are CVM's, of the row or of its sequence."""
        dy, dx, cvm, xp = k["Y@GRAD"], k["X@GRAD"], k["CVM"], k.xp
        lod, skip = forward_meta(k, "X").lod, 2 if k.attr("use_cvm") else 0
        if lod and cvm.shape[0] != dx.shape[0]:
            rows = xp.asarray(np.repeat(np.arange(len(lod[0]) - 1), lod_rows.lengths_of(lod[0])))
        else:
            rows = xp.arange(dx.shape[0], dtype="int64")
        return lambda: (xp.copyto(dx[:, 2:], dy[:, skip:]), xp.copyto(dx[:, :2], cvm[rows]))


@op("filter_by_instag", "Ins Ins_tag Filter_tag", "Out LossWeight IndexMap", grad_reads="IndexMap LossWeight",
    no_grad="Ins_tag Filter_tag", attrs={"is_lod": True, "out_val_if_empty": 0})
class FilterByInstag:
    """The instances (rows, or sequences of rows) that have one of the tags asked for.

    IndexMap says of each where it begins in Out, where in Ins, and how many rows it has. Where none is left, Out is
    one row of ``out_val_if_empty`` whose LossWeight is 0.
    """

    def infer(k):
        """Known when the tags are."""
        columns = k.shape("Ins")[1]
        if not k.concrete:
            k.known("Ins_tag")
            kept, rows, level = -1, -1, ()
        else:
            chosen = _chosen(k)
            kept, rows = max(len(chosen), 1), max(int(chosen[:, 2].sum()), 1)
            level = lod_rows.level_of(chosen[:, 2]) if len(chosen) else (0, 1)
        k.set("Out", [rows, columns], lod=(level,))
        k.set("LossWeight", [kept, 1], "float32", lod=(tuple(range(kept + 1)) if k.concrete else (),))
        k.set("IndexMap", [kept, 3], "int64", lod=(tuple(range(kept + 1)) if k.concrete else (),))

    def run(k):
        ins, out, weight, xp = k["Ins"], k["Out"], k["LossWeight"], k.xp
        chosen, index = _chosen(k), k["IndexMap"]
        if not len(chosen):
            empty = xp.asarray(np.array([[0, 1, 1]]))
            return lambda: (out.fill(k.attr("out_val_if_empty")), weight.fill(0), xp.copyto(index, empty))
        rows, places = xp.asarray(lod_rows.runs(chosen[:, 1], chosen[:, 2])), xp.asarray(chosen)
        return lambda: (xp.copyto(out, ins[rows]), weight.fill(1), xp.copyto(index, places))

    def grad(k):
        """Back to the rows they came from; zero for all others."""
        dout, dins, xp = k["Out@GRAD"], k["Ins@GRAD"], k.xp
        chosen = k.metas.value_now(k.name("IndexMap"))
        if not k.metas.value_now(k.name("LossWeight")).any():
            return lambda: dins.fill(0)
        rows = xp.asarray(lod_rows.runs(chosen[:, 1], chosen[:, 2]))

        def run():
            dins.fill(0)
            dins[rows] = dout
        return run


def _chosen(k):
    """[begin in Out, begin in Ins, rows] of every instance that has one of the tags."""
    tags, wanted = k.known("Ins_tag").reshape(-1), k.known("Filter_tag").reshape(-1)
    level, count = lod_rows.offsets_array(last_level(k, "Ins_tag")), k.shape("Ins")[0]
    begins = lod_rows.offsets_array(last_level(k, "Ins")) if k.attr("is_lod") else np.arange(count + 1)
    if len(begins) != len(level):
        k.fail(f"expected tags for each of {len(begins) - 1} instances, got {len(level) - 1}")
    hits = np.concatenate([[0], np.cumsum(np.isin(tags, wanted))])[level]
    instances = np.flatnonzero(hits[1:] > hits[:-1])
    lengths = (begins[1:] - begins[:-1])[instances]
    return np.stack([np.cumsum(lengths) - lengths, begins[instances], lengths], axis=1).astype(np.int64)


@op("hash", "X", attrs={"num_hash": 1, "mod_by": 100000})
class Hash:
    """``num_hash`` hashes (XXH64 with the seeds 0, 1, ...) of each row of ids, modulo ``mod_by``."""

    def infer(k):
        """The last dimension, the ids of a row, becomes [num_hash, 1]."""
        if k.dtype("X").kind not in "iu":
            k.fail(f"expected whole numbers, got {k.dtype('X')}")
        k.set("Out", [*k.shape("X")[:-1], k.attr("num_hash"), 1], k.dtype("X"), lod=k.lod("X"))

    def run(k):
        x, count, mod, xp = k["X"], k.attr("num_hash"), int(k.attr("mod_by")), k.xp
        rows, out = x.reshape(-1, x.shape[-1]), k["Out"].reshape(-1, count)
        made = k.scratch((rows.shape[0],), "uint64")
        return lambda: [(hash_rows(rows, seed, made), xp.copyto(out[:, seed], made % mod, casting="unsafe"))
                        for seed in range(count)]
