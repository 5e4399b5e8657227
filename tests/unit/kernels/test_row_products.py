"""Products with chosen rows: both versions agree, and an id of -1 chooses nothing."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference import row_products as kernels

SIZES = [(1, 1, 3, 1), (5, 4, 7, 3), (64, 11, 100, 16)]


def made(rng, rows, chosen, height, width, dtype):
    ids = rng.integers(-1, height, (rows, chosen))
    return (rng.normal(size=(rows, width)).astype(dtype), rng.normal(size=(height, width)).astype(dtype), ids,
            rng.normal(size=(rows, chosen)).astype(dtype))


def products(size, dtype):
    def make(rng):
        x, table, ids, out = made(rng, *size, dtype)
        return x, table, ids, np.empty_like(out)
    return make


def of_x(size, dtype):
    def make(rng):
        x, table, ids, dout = made(rng, *size, dtype)
        return dout, table, ids, np.empty_like(x)
    return make


def of_rows(size, dtype):
    def make(rng):
        x, table, ids, dout = made(rng, *size, dtype)
        return dout, x, ids, np.empty((*ids.shape, x.shape[1]), dtype)
    return make


MAKERS = {"row_products": products, "row_products_of_x": of_x, "row_products_of_rows": of_rows}
KERNEL_CASES = {name: [make(size, dtype) for size in SIZES for dtype in (np.float32, np.float64)]
                for name, make in MAKERS.items()}
KERNEL_TOLERANCES = dict.fromkeys(MAKERS, 1e-5)


@pytest.mark.parametrize("run", [kernels.row_products, kernels.row_products.reference])
def test_an_id_of_minus_one_gives_zero(run):
    out = np.empty((1, 3))
    run(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]), np.array([[1, -1, 0]]), out)
    assert out.tolist() == [[17.0, 0.0, 11.0]]
