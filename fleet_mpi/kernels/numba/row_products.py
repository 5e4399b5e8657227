"""The row products for host arrays: no copy of the chosen rows is made."""

from fleet_mpi.kernels.numba.compiling import compiled


@compiled
def row_products(x, table, ids, out):
    """One dot product after the other."""
    zero, width = x.dtype.type(0), x.shape[1]
    for i in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            total = zero
            if ids[i, j] >= 0:
                row = table[ids[i, j]]
                for d in range(width):
                    total += x[i, d] * row[d]
            out[i, j] = total


@compiled
def row_products_of_x(dout, table, ids, dx):
    """Each row of dx stays in the cache while the chosen rows are added."""
    dx[:] = 0
    for i in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            if ids[i, j] >= 0:
                share, row = dout[i, j], table[ids[i, j]]
                for d in range(dx.shape[1]):
                    dx[i, d] += share * row[d]


@compiled
def row_products_of_rows(dout, x, ids, values):
    """One pass over the values."""
    for i in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            share = dout[i, j] if ids[i, j] >= 0 else dout.dtype.type(0)
            for d in range(x.shape[1]):
                values[i, j, d] = share * x[i, d]
