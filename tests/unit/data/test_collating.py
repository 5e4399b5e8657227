"""fleet_mpi/data/collating.py."""

import numpy as np
import pytest

from fleet_mpi.data.collating import default_collate_fn, default_convert_fn, flat_fields
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.scope import Tensor


def test_fields_become_arrays_with_one_more_dimension():
    samples = [(np.ones(2, "float32") * n, n, 0.5 * n, f"name {n}", Tensor(np.array([n]))) for n in range(3)]
    image, label, weight, name, tensor = default_collate_fn(samples)
    assert image.shape == (3, 2) and image.dtype == np.float32
    assert label.dtype == np.int64 and label.tolist() == [0, 1, 2] and weight.tolist() == [0, 0.5, 1]
    assert name == ["name 0", "name 1", "name 2"] and tensor.tolist() == [[0], [1], [2]]


def test_dictionaries_and_lists_keep_their_form():
    made = default_collate_fn([{"x": 1, "more": [2, 3]}, {"x": 4, "more": [5, 6]}])
    assert made["x"].tolist() == [1, 4] and [one.tolist() for one in made["more"]] == [[2, 5], [3, 6]]
    assert [one.tolist() for one in flat_fields(made)] == [[1, 4], [2, 5], [3, 6]]


@pytest.mark.parametrize("batch, said", [
    ([(1, 2), (1,)], "fields"), ([np.ones(2), np.ones(3)], "pad them"), ([object()], "collate_fn")])
def test_what_makes_no_batch_is_refused(batch, said):
    with pytest.raises(UsageError, match=said):
        default_collate_fn(batch)


def test_single_samples_stay_as_they_are():
    made = default_convert_fn({"x": (1, np.ones(2)), "name": "a"})
    assert made["x"][0] == np.array(1) and made["x"][1].shape == (2,) and made["name"] == "a"
