"""fleet_mpi/data/feeder.py."""

import numpy as np
import pytest

from fleet_mpi.data.feeder import DataFeeder
from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.program import Program


def variables(*fields):
    block = Program().global_block()
    return [block.create_var(name=f"v{i}", is_data=True, **field) for i, field in enumerate(fields)]


def test_flat_samples_take_the_declared_shape_and_type():
    feeder = DataFeeder(variables(dict(shape=[-1, 1, 2, 2]), dict(shape=[-1, 1], dtype="int64")))
    feed = feeder.feed([(np.arange(4.0), 3), (np.arange(4.0) + 4, 5)])
    assert feed["v0"].shape() == [2, 1, 2, 2] and np.array(feed["v0"]).dtype == np.float32
    assert feed["v1"].lod() == [] and np.array(feed["v1"]).dtype == np.int64
    assert np.array(feed["v1"]).tolist() == [[3], [5]]


def test_a_label_may_be_a_bare_int_or_a_list_of_one():
    feeder = DataFeeder(variables(dict(shape=[-1, 1], dtype="int64")))
    assert feeder.feed([(1,), (2,)])["v0"].shape() == [2, 1]
    assert feeder.feed([([1],), ([2],)])["v0"].shape() == [2, 1]


def test_ragged_lists_become_tensors_with_lengths():
    feeder = DataFeeder(variables(dict(shape=[-1, 1], dtype="int64", lod_level=1)))
    tensor = feeder.feed([([1, 2, 3],), ([4],)])["v0"]
    assert tensor.recursive_sequence_lengths() == [[3, 1]]
    assert np.asarray(tensor).tolist() == [[1], [2], [3], [4]]


def test_two_levels_keep_both_lengths():
    feeder = DataFeeder(variables(dict(shape=[-1, 1], dtype="int64", lod_level=2)))
    tensor = feeder.feed([([[1, 2], [3]],), ([[4, 5, 6]],)])["v0"]
    assert tensor.recursive_sequence_lengths() == [[2, 1], [2, 1, 3]]


@pytest.mark.parametrize("samples", [[(1,), (2, 3)], [(1, 2, 3)], [([1.0, 2.0], 1)]])
def test_samples_that_do_not_fit_are_refused_with_the_variable_named(samples):
    feeder = DataFeeder(variables(dict(shape=[-1, 1], need_check_feed=True), dict(shape=[-1, 1], dtype="int64")))
    with pytest.raises(UsageError, match="v0"):
        feeder.feed(samples)


def test_the_sizes_of_layers_data_bind_no_sample():
    feeder = DataFeeder(variables(dict(shape=[-1, 50], dtype="int64")))
    assert feeder.feed([(list(range(30)),), (list(range(30)),)])["v0"].shape() == [2, 30]


def test_samples_and_fields_may_come_as_zip_objects_and_generators():
    words, label = dict(shape=[-1, 1], dtype="int64", lod_level=1), dict(shape=[-1, 1], dtype="int64")
    feed = DataFeeder(variables(words, label)).feed(
        iter(sample) for sample in [[map(int, "123"), 0], [(int(one) for one in "4"), 1]])
    assert feed["v0"].recursive_sequence_lengths() == [[3, 1]] and np.array(feed["v1"]).tolist() == [[0], [1]]
    feed = DataFeeder(variables(label, label)).feed([zip(*[[3, 4]]), zip([5, 6])])
    assert np.array(feed["v0"]).tolist() == [[3], [5]]


def test_sequences_of_a_variable_declared_flat_are_flat():
    fed = DataFeeder(variables(dict(shape=[-1], dtype="int64", lod_level=1))).feed([([1, 2],), ([3],)])["v0"]
    assert fed.numpy().tolist() == [1, 2, 3] and fed.recursive_sequence_lengths() == [[2, 1]]
