"""Attention by rank: what is shown together in a page view weighs by who stands at which rank.

RankOffset has a row for each sample: its own rank, from 1 up, or less for none; then, for each rank, that rank and
the row of X that holds it in the same page view, or less than 1. ``data/page_views`` makes it.
"""

from fleet_mpi.kernels.products import products
from fleet_mpi.kernels.reference import sequence as kernels
from fleet_mpi.program.engine.outside import ANY, Check, id_check
from fleet_mpi.program.graph.registry import op


@op("rank_attention", "X RankOffset RankParam", "Out InputHelp InsRank", attrs={"MaxRank": 3, "MaxSize": 0},
    grad_reads="InputHelp InsRank", no_grad="X RankOffset")
class RankAttention:
    """The samples of a page view by rank, side by side (InputHelp), times the matrix for a sample's own rank.

    A sample without a rank gets 0. X gets no gradient, as in the original. ``MaxSize`` is the original's hint at how
    much memory to allocate; it has no effect.
    """

    def infer(k):
        ranks, x, offset, weight = k.attr("MaxRank"), k.shape("X"), k.shape("RankOffset"), k.shape("RankParam")
        if len(x) != 2 or len(offset) != 2 or offset[1] != 2 * ranks + 1 or k.dtype("RankOffset").kind != "i":
            k.fail(f"expected X [N, columns] and whole numbers RankOffset [N, 2 x MaxRank + 1 = {2 * ranks + 1}], got "
                   f"{list(x)} and {k.dtype('RankOffset')}{list(offset)}")
        if x[0] != offset[0] and -1 not in (x[0], offset[0]):
            k.fail(f"expected a row of RankOffset for each of the {x[0]} rows of X, got {offset[0]}")
        if len(weight) != 2 or weight[0] != ranks * ranks * x[1] and x[1] != -1:
            k.fail(f"expected RankParam [MaxRank x MaxRank x columns of X = {ranks * ranks * x[1]}, any], got "
                   f"{list(weight)}")
        k.set("Out", [x[0], weight[1]])
        k.set("InputHelp", [x[0], ranks * x[1] if x[1] != -1 else -1], lod=())
        k.set("InsRank", [x[0], 1], lod=())

    def run(k):
        """Gather, then a product for each rank, of which a sample takes its own."""
        out, own, xp = k["Out"], k["InsRank"], k.xp
        gather, blocks = _gather_call(k), _blocks(k, k["RankParam"])
        made = [k.scratch(out.shape, out.dtype) for _ in blocks]
        multiply = products([(k["InputHelp"], block, one) for block, one in zip(blocks, made)])

        def run():
            gather()
            multiply()
            out.fill(0)
            for rank, one in enumerate(made, start=1):
                xp.copyto(out, one, where=own == rank)
        return run

    def grad(k):
        """Each rank's matrix from the samples that have it."""
        dout, own, xp = k["Out@GRAD"], k["InsRank"], k.xp
        blocks = _blocks(k, k["RankParam@GRAD"])
        parts = [k.scratch(dout.shape, dout.dtype) for _ in blocks]
        multiply = products([(k["InputHelp"].T, part, block) for part, block in zip(parts, blocks)])

        def run():
            for rank, part in enumerate(parts, start=1):
                xp.multiply(dout, own == rank, part)
            multiply()
        return run


def _blocks(k, weight):
    """The matrix of each rank: rows for the columns of the first rank's sample, then the second's, ..."""
    stack = weight.reshape(k.attr("MaxRank"), -1, weight.shape[1])
    return [stack[rank] for rank in range(len(stack))]


def _gather_call(k):
    """The call that fills InputHelp and InsRank."""
    x, offset, gathered, own, xp = k["X"], k["RankOffset"], k["InputHelp"], k["InsRank"], k.xp
    count, ranks = x.shape[0], k.attr("MaxRank")
    take, lines = kernels.take_rows.pick(x), gathered.reshape(count * ranks, x.shape[1])
    check_rows = id_check(k, count, "X", spared=-1)
    check_ranks = Check(k, ranks + 1, lambda wrong, position: (
        f"RankOffset gives row {position} of X the rank {wrong}: expected at most MaxRank={ranks}"), lowest=ANY)
    wanted = xp.arange(1, ranks + 1, dtype="int64")

    def run():
        check_ranks(offset[:, 0])
        own[:, 0] = offset[:, 0]
        is_shown = (offset[:, :1, None] > 0) & (offset[:, 1::2, None] == wanted)  # [row, place, rank]
        holders = xp.where(is_shown, offset[:, 2::2, None], -1).max(axis=1).astype("int64")
        check_rows(holders)
        take(x, holders.reshape(-1), 0, lines)
    return run
