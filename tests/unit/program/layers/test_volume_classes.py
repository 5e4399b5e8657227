"""Classes and functions of volumes (volume_classes, functional_volumes)."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import functional_volumes, volume_classes
from fleet_mpi.program.layers.data import static_data

RNG = np.random.default_rng(0)
VOLUMES = RNG.normal(size=(2, 4, 4, 6, 2)).astype("float32")
HALVES = VOLUMES.reshape(2, 4, 2, 2, 3, 2, 1, 2)


def run(*fetches, **feed):
    executor = Executor()
    executor.run(default_startup_program())
    return executor.run(feed=feed or {"x": VOLUMES}, fetch_list=list(fetches))


def volumes():
    return static_data("x", [None, 4, 4, 6, 2])


def parameter(name):
    return default_main_program().global_block().var(name)


def test_pools():
    x = volumes()
    found = run(volume_classes.MaxPool3D(2)(x), volume_classes.AvgPool3D(2)(x),
                volume_classes.AdaptiveAvgPool3D([2, 3, 1])(x),
                volume_classes.AdaptiveMaxPool3D([2, 3, 1])(x), volume_classes.AdaptiveAvgPool3D([None, 1, 1])(x),
                functional_volumes.avg_pool3d(x, 2, divisor_override=4))
    largest, mean = HALVES.max((3, 5, 7)), HALVES.mean((3, 5, 7))
    wanted = [largest, mean, mean, largest, VOLUMES.mean((3, 4), keepdims=True), mean * 2]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_where_the_maxima_lie():
    pooled, places = run(*volume_classes.MaxPool3D(2, return_mask=True)(volumes()))
    flat = np.take_along_axis(VOLUMES.reshape(2, 4, -1), places.reshape(2, 4, -1), 2)
    np.testing.assert_array_equal(flat, pooled.reshape(2, 4, -1))


def test_a_border():
    found, = run(volume_classes.Pad3D([1, 0, 0, 2, 1, 1], value=3.0)(volumes()))
    np.testing.assert_array_equal(found, np.pad(VOLUMES, ((0, 0), (0, 0), (1, 1), (0, 2), (1, 0)), constant_values=3))


def test_places_need_the_channel_second():
    with pytest.raises(UsageError, match="channel second"):
        functional_volumes.max_pool3d(volumes(), 2, return_mask=True, data_format="NDHWC")
