"""fleet_mpi/kernels/products.py."""

import numpy as np
import pytest

from fleet_mpi.kernels import products, threads
from fleet_mpi.kernels.products import product
from fleet_mpi.testing import DeviceArray, device

# (left, right) shapes: by rows, by columns, one piece, by matrix, a stretched stack, small.
SHAPES = [((700, 300), (300, 400)), ((100, 700), (700, 900)), ((200, 5000), (5000, 200)),
          ((40, 100, 90), (40, 90, 120)), ((300, 200, 50), (50, 60)), ((3, 4), (4, 5))]


def factors(shapes, turned):
    """Two factors; ``turned`` ones lie transposed in memory, as those of gradients do."""
    rng = np.random.default_rng(0)
    return [np.swapaxes(rng.normal(size=shape[:-2] + shape[:-3:-1]), -1, -2).astype("float32", order="K") if turn
            else rng.normal(size=shape).astype("float32") for shape, turn in zip(shapes, turned)]


def computed(left, right, count):
    out = np.full(np.matmul(left, right).shape, np.nan, "float32")
    threads.set_threads(count)
    try:
        product(left, right, out)()
    finally:
        threads.set_threads(None)
    return out


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_any_number_of_threads_gives_the_same_bits(shapes, turned):
    left, right = factors(shapes, turned)
    one = computed(left, right, 1)
    np.testing.assert_allclose(one, np.matmul(left.astype("float64"), right.astype("float64")), atol=2e-3)
    for count in (2, 3):
        assert (computed(left, right, count) == one).all()


def test_large_products_are_cut_and_small_ones_are_not():
    counts = {shapes: len(products._parts(*factors(shapes, (False, False)), np.matmul(
        *factors(shapes, (False, False))))) for shapes in SHAPES}
    assert counts[SHAPES[0]] == 3 and counts[SHAPES[1]] == 4 and counts[SHAPES[3]] > 1
    assert counts[SHAPES[2]] == counts[SHAPES[4]] == counts[SHAPES[5]] == 1


def test_device_arrays_are_multiplied_on_the_device():
    left, right = (device.asarray(factor) for factor in factors(SHAPES[5], (False, False)))
    out = device.empty((3, 5), "float32")
    product(left, right, out)()
    assert isinstance(out, DeviceArray)
    np.testing.assert_allclose(out.get(), left.get() @ right.get(), rtol=1e-6)
