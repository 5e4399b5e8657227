"""Sums over ranks in a fixed order: parts [ranks, n], one line for each rank, whatever order they came in."""

from fleet_mpi.kernels import kernel


@kernel
def sum_of_ranks(parts, out):
    """out = parts[0] + parts[1] + ..., from left to right."""
    out[...] = parts[0]
    for number in range(1, parts.shape[0]):
        out += parts[number]


@kernel
def sum_of_half_ranks(parts, out):
    """The sum of float16 parts: widened to float32, added in rank order, rounded once to ``out``, float16."""
    total = parts[0].astype("float32")
    for number in range(1, parts.shape[0]):
        total += parts[number].astype("float32")
    out[...] = total.astype("float16")
