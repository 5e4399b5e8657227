"""Gradients that travel together: which, how many, and where they lie."""

import numpy as np
import pytest
from hypothesis import given, strategies as some

import fleet_mpi.fluid as fluid
from fleet_mpi.collective.buckets import MEGABYTE, Bucket, FlatGradients, Gradient, fuse, size_of
from fleet_mpi.examples import resnet
from fleet_mpi.fleet.collective_job import options_of
from fleet_mpi.fleet.strategy import DistributedStrategy
from fleet_mpi.transpile.collective import plan_of


def gradients_of(*kilobytes, dtype="float32"):
    """Gradients of these sizes."""
    return [Gradient(f"g{number}", (size, 1024 // np.dtype(dtype).itemsize), dtype)
            for number, size in enumerate(kilobytes)]


def names(buckets):
    return [bucket.names for bucket in buckets]


def test_buckets_are_filled_from_the_end_and_the_last_one_is_small():
    made = fuse(gradients_of(512, 512, 512, 512, 256, 256), fuse_mb=1, last_mb=0.5)
    assert names(made) == [("g0", "g1"), ("g2", "g3"), ("g4", "g5")]
    assert names(fuse(gradients_of(512, 512, 512, 512, 256, 256), fuse_mb=1, last_mb=0.25)) == [
        ("g0",), ("g1", "g2"), ("g3", "g4"), ("g5",)]


def test_zero_is_a_bucket_for_each():
    assert names(fuse(gradients_of(1, 1, 1), fuse_mb=0, last_mb=0)) == [("g0",), ("g1",), ("g2",)]
    assert names(fuse(gradients_of(1, 1, 1), fuse_mb=32, last_mb=0)) == [("g0", "g1"), ("g2",)]


def test_a_long_gradient_is_a_bucket_by_itself():
    assert names(fuse(gradients_of(1, 5000, 1), fuse_mb=1, last_mb=1)) == [("g0",), ("g1",), ("g2",)]


def test_types_do_not_mix():
    mixed = [Gradient("a", (4,), "float32"), Gradient("b", (4,), "float64"), Gradient("c", (), "float64")]
    assert fuse(mixed) == [Bucket(("a",), "float32", 0, 64), Bucket(("b", "c"), "float64", 64, 192)]


def test_no_gradients_make_no_buckets():
    assert fuse([]) == [] and size_of([]) == 0 and FlatGradients([], []).lines == []


@given(sizes=some.lists(some.integers(1, 3000), max_size=20), fuse_mb=some.sampled_from((0, 0.002, 0.01, 32)),
       last_mb=some.sampled_from((0, 0.001, 0.02, 1)),
       types=some.lists(some.sampled_from(("float32", "float64", "float16")),
                        min_size=20, max_size=20))
def test_every_gradient_is_in_one_bucket_in_order_and_within_the_size(sizes, fuse_mb, last_mb, types):
    gradients = [Gradient(f"g{number}", (size,), dtype) for number, (size, dtype) in enumerate(zip(sizes, types))]
    buckets, by_name = fuse(gradients, fuse_mb, last_mb), {one.name: one for one in gradients}
    assert [name for bucket in buckets for name in bucket.names] == [one.name for one in gradients]
    place = 0
    for bucket in buckets:
        members = [by_name[name] for name in bucket.names]
        assert bucket.start == place and {one.dtype for one in members} == {bucket.dtype}
        limit = (last_mb if bucket is buckets[-1] else fuse_mb) * MEGABYTE
        assert len(members) == 1 or sum(one.nbytes for one in members) <= limit
        place = bucket.stop
    flat = FlatGradients(gradients, buckets)
    for number, one in enumerate(gradients):
        flat.views[one.name][...] = number + 1
    for number, one in enumerate(gradients):
        assert flat.views[one.name].shape == one.shape and (flat.views[one.name] == number + 1).all()
        assert flat.views[one.name].ctypes.data % 64 == 0
    for bucket, line in zip(buckets, flat.lines):
        # What lies between gradients is summed too, and must be nothing.
        assert line.dtype == bucket.dtype
        assert line.astype("float64").sum() == sum((int(name[1:]) + 1) * by_name[name].shape[0]
                                                   for name in bucket.names)


@pytest.fixture(scope="module")
def resnet_50():
    """ResNet-50's program, minimised."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fluid.optimizer.Momentum(0.1, 0.9).minimize(resnet.network(50).loss)
    return main


@pytest.mark.parametrize("switches, count", (
    ({}, 4),
    ({"fuse_grad_size_in_MB": 16}, 8),
    ({"fuse_grad_size_in_MB": 16, "last_comm_group_size_MB": 0.0}, 8),
    ({"last_comm_group_size_MB": 32.0}, 3),
    ({"fuse_grad_size_in_MB": 1000}, 2),
    ({"fuse_all_reduce_ops": False}, 161)))
def test_the_strategy_s_sizes_make_resnet_s_161_gradients_so_many_buckets(resnet_50, switches, count):
    strategy = DistributedStrategy()
    for name, value in switches.items():
        setattr(strategy, name, value)
    plan = plan_of(resnet_50, 2, 0, options_of(strategy))
    assert len(plan.gradients) == 161
    sizes = [round((bucket.stop - bucket.start) / MEGABYTE, 2) for bucket in plan.buckets]
    assert len(plan.buckets) == count, sizes
