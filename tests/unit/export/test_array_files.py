"""Variables as npz and safetensors, read back by numpy and by safetensors' own loaders."""

import numpy as np
import pytest

from fleet_mpi import export as room, fluid
from fleet_mpi.errors import UsageError
from fleet_mpi.export import export


@pytest.fixture
def folder(tmp_path):
    """Saved variables with awkward names: a slash, the name of an argument of np.savez."""
    x = fluid.layers.data("x", [3])
    fluid.layers.fc(x, 2, param_attr="below/w", bias_attr="file")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_params(exe, str(tmp_path / "saved"))
    return tmp_path / "saved"


def expected():
    return {name: fluid.global_scope().find_var(name).get_tensor().numpy() for name in ("below/w", "file")}


def assert_holds(found):
    assert sorted(found) == ["below/w", "file"]
    for name, array in expected().items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_npz_is_read_by_numpy(folder, tmp_path):
    assert export(folder, "npz", tmp_path / "out.npz").startswith("2 variables, 8 elements, ")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as archive:
        assert_holds(dict(archive))


def test_safetensors_are_read_by_their_own_loader(folder, tmp_path):
    library = pytest.importorskip("safetensors.numpy",
                                  reason="safetensors is not installed: pip install '.[export]'")
    size = (export(folder, "safetensors", tmp_path / "out.safetensors"), (tmp_path / "out.safetensors").stat().st_size)
    assert size[0] == f"2 variables, 8 elements, {size[1]} bytes"
    assert_holds(library.load_file(tmp_path / "out.safetensors"))


def test_an_unknown_kind_has_the_nearest_one(folder, tmp_path):
    with pytest.raises(UsageError, match="unknown kind 'onx'; did you mean 'onnx'"):
        export(folder, "onx", tmp_path / "out")


def test_a_failing_export_leaves_the_old_file(folder, tmp_path, monkeypatch):
    def fail(saved, stream):
        stream.write(b"half")
        raise UsageError("no")
    monkeypatch.setitem(room.KINDS, "npz", fail)
    (tmp_path / "out.npz").write_bytes(b"old")
    with pytest.raises(UsageError):
        export(folder, "npz", tmp_path / "out.npz")
    assert (tmp_path / "out.npz").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.npz", "saved"]
