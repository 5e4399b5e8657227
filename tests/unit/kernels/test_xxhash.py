"""Hashes of rows: those of the xxhash library (4.1.0), for every way the bytes are read."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference import xxhash as kernels


def rows(columns, dtype):
    return lambda rng: (rng.integers(-9, 9, (5, columns)).astype(dtype), 3, np.empty(5, np.uint64))


KERNEL_CASES = {"hash_rows": [rows(columns, dtype) for columns in (1, 2, 9) for dtype in (np.int32, np.int64)]}


@pytest.mark.parametrize("count, dtype, digest", [
    (1, "int32", 0xd4a3d65b17be5417), (3, "int64", 0xb797a3d4cef646bc), (5, "int32", 0x87f1bb4ac4273de),
    (9, "int64", 0xc0848450e46a072c), (17, "int32", 0x2d02b401c4b1fdb3)])
def test_rows_of_0_1_2_with_the_seed_3(count, dtype, digest):
    out = np.empty(2, np.uint64)
    kernels.hash_rows(np.tile(np.arange(count, dtype=dtype), (2, 1)), 3, out)
    assert out.tolist() == [digest] * 2
