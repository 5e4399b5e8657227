"""Products of each row of a matrix with some rows of a table, chosen by id: what sampled losses are made of.

``x`` is [n, width], ``ids`` int64 [n, chosen], ``table`` [height, width]. An id of -1 chooses no row: its product
is zero. Ids are checked by the caller (``rows.first_outside``).
"""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel


@kernel
def row_products(x, table, ids, out):
    """out[i, j] = x[i] . table[ids[i, j]]."""
    xp = module_of(x)
    rows = table[xp.maximum(ids, 0)]
    out[...] = xp.where(ids < 0, 0.0, (rows * x[:, None, :]).sum(axis=2))


@kernel
def row_products_of_x(dout, table, ids, dx):
    """dx[i] = the sum over j of dout[i, j] table[ids[i, j]]."""
    xp = module_of(dout)
    shares = xp.where(ids < 0, 0.0, dout)
    dx[...] = (table[xp.maximum(ids, 0)] * shares[:, :, None]).sum(axis=1)


@kernel
def row_products_of_rows(dout, x, ids, values):
    """values[i, j] = dout[i, j] x[i], the gradient of each chosen row; zeros where none is chosen."""
    xp = module_of(dout)
    values[...] = xp.where(ids < 0, 0.0, dout)[:, :, None] * x[:, None, :]
