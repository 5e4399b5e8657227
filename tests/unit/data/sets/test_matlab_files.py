"""MATLAB version 5 files, written here by hand: plain, compressed, small elements, both byte orders."""

import struct
import zlib

import numpy as np
import pytest

from fleet_mpi.data.sets.matlab_files import load_arrays
from fleet_mpi.errors import UsageError


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_are_read_in_matlabs_column_order(tmp_path, matlab, order, compressed):
    values = np.arange(1, 13).reshape(3, 4)
    elements = [matlab.matrix(order, "labels", values), matlab.matrix(order, "x", values * 1000, "u2", 4)]
    if compressed:
        packed = [zlib.compress(each) for each in elements]
        elements = [struct.pack(order + "II", 15, len(each)) + each for each in packed]
    matlab.write(tmp_path / "a.mat", elements, order)
    arrays = load_arrays(tmp_path / "a.mat")
    assert sorted(arrays) == ["labels", "x"]
    assert (arrays["labels"] == values).all() and (arrays["x"] == values * 1000).all()


def test_a_tiny_array_uses_the_small_form(tmp_path, matlab):
    matlab.write(tmp_path / "a.mat", [matlab.matrix("<", "n", np.array([[7, 8]]))])
    assert load_arrays(tmp_path / "a.mat")["n"].tolist() == [[7, 8]]


def test_other_files_and_other_matrices_are_refused(tmp_path, matlab):
    (tmp_path / "a.mat").write_bytes(b"no matrix")
    with pytest.raises(UsageError, match="version 5"):
        load_arrays(tmp_path / "a.mat")
    matlab.write(tmp_path / "b.mat", [matlab.matrix("<", "cell", np.array([[1, 2]]), array_class=1)])
    with pytest.raises(UsageError, match="cell"):
        load_arrays(tmp_path / "b.mat")
