"""fleet_mpi/kernels/reference/summing.py."""

import numpy as np

from fleet_mpi.kernels.reference import summing


def floats(rng, *shape, dtype="float32"):
    return rng.normal(size=shape).astype(dtype)


# Orders of summation differ between numpy and the compiled loops.
KERNEL_TOLERANCES = dict.fromkeys(("mean_of_all", "sum_of_rows", "sum_of_channels"), 1e-5)
KERNEL_CASES = {
    "mean_of_all": [lambda rng, n=n: (floats(rng, n) + 3, np.zeros(1, "float32")) for n in (1, 7, 8, 1001)],
    "spread": [lambda rng, n=n: (floats(rng, 1), np.zeros(n, "float32")) for n in (1, 20)],
    "sum_of_rows": [lambda rng, s=s: (floats(rng, *s) + 3, np.ones(s[1], "float32")) for s in ((20, 1), (5, 400))],
    "sum_of_channels": [lambda rng: (floats(rng, 3, 4, 25) + 3, np.ones(4, "float32"))],
}


def test_a_long_mean_keeps_its_digits():
    """Added one by one in float32, ten million small numbers stop growing."""
    x, out = np.full(10_000_000, 0.1, "float32"), np.zeros(1, "float32")
    summing.mean_of_all(x, out)
    assert out[0] == np.float32(0.1)
