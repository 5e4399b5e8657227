"""Casts of many of cupy's arrays by one launch: of float32 ones to float16."""

from fleet_mpi.kernels.cuda.compiling import fits
from fleet_mpi.kernels.cuda.tables import MINE, bound_over, go_together
from fleet_mpi.kernels.reference import casting

SOURCE = MINE + r"""
extern "C" __global__ void cast_all(const long long *table, const int *pieces)
{
    const Mine<2> mine(table, pieces);
    const real *wide = mine.array(0);
    stored *out = mine.array<stored>(1);
    FOR_MY_PIECE(i, mine)
        out[i] = narrow(wide[i]);
}
"""


def cast_all(arrays, outs):
    """Bind one launch."""
    if go_together([[array] for array in arrays], dtypes=("float32",)) and fits(*outs, dtypes=("float16",)):
        return bound_over(SOURCE, "cast_all", list(zip(arrays, outs)), like=outs[0])
    return casting.cast_all.reference(arrays, outs)
