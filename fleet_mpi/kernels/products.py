"""Matrix products, large ones cut over the rank's threads.

The cut follows from the shapes alone and every piece is one one-threaded BLAS call, so the bits do not depend on
the number of threads. Knows no ops.
"""

from fleet_mpi import arrays
from fleet_mpi.kernels import threads

# Multiply-adds below which handing out pieces costs more than a second core saves: about 0.4 ms of one core.
CUT_FROM = 1 << 24
# Rows (or columns) of a piece: the other factor is packed once per piece, 2 % of the work at 256 rows.
PIECE = 256


def product(left, right, out):
    """The call that writes the product of two matrices, or of two stacks of them, into ``out``."""
    return products([(left, right, out)])


def products(all_of_them):
    """One call for several products (left, right, out) that do not depend on each other."""
    xp = arrays.module_of(all_of_them[0][2])
    parts = all_of_them
    if arrays.is_host(parts[0][2]):
        threads.hold_blas()
        parts = [part for one in all_of_them for part in _parts(*one)]
    if len(parts) > len(all_of_them):
        def run(i):
            left, right, out = parts[i]
            xp.matmul(left, right, out)
        return lambda: threads.for_each(run, len(parts))
    calls = [_small(xp, *part) for part in parts]
    if len(calls) == 1:
        return calls[0]

    def run_all():
        for call in calls:
            call()
    return run_all


def _small(xp, left, right, out):
    if left.ndim == right.ndim == 2:  # dot has 0.3 us less to do before it begins
        return lambda: xp.dot(left, right, out)
    return lambda: xp.matmul(left, right, out=out)  # by name: cupy's takes no third argument


def _parts(left, right, out):
    """The product as a list of smaller ones: of stacks by matrix, else by rows, else by columns."""
    whole = [(left, right, out)]
    if out.size * left.shape[-1] < CUT_FROM:
        return whole
    if out.ndim == 3 and left.ndim == right.ndim == 3 and len(left) == len(right) == len(out) > 1:
        size = max(1, -(-CUT_FROM // (4 * out[0].size * left.shape[-1])))
        return [(left[some], right[some], out[some]) for some in threads.pieces(len(out), size)]
    if out.ndim != 2:
        return whole
    if out.shape[0] > PIECE:
        return [(left[some], right, out[some]) for some in _even_pieces(out.shape[0])]
    if out.shape[1] > PIECE:
        return [(left, right[:, some], out[:, some]) for some in _even_pieces(out.shape[1])]
    return whole


def _even_pieces(count):
    """As few slices of at most PIECE as there can be, of equal size: 400 rows as 200 and 200, not 256 and 144."""
    return threads.pieces(count, -(-count // -(-count // PIECE)))
