"""Modules of 2.x beside the layers: curves, versions, devices, and what is refused when it is used."""

import pytest

from fleet_mpi import paddle
from fleet_mpi.errors import EnvironmentProblem, UnknownName
from fleet_mpi.paddle import device, version
from fleet_mpi.paddle.utils.plot import Ploter


def test_curves_are_kept_where_nothing_is_drawn(monkeypatch):
    monkeypatch.setenv("DISABLE_PLOT", "True")
    curves = Ploter("train", "test")
    curves.append("train", 0, 2.5)
    curves.append("train", 1, 1.5)
    curves.plot("nowhere/curve.png")
    assert (curves.__plot_data__["train"].step, curves.__plot_data__["train"].value) == ([0, 1], [2.5, 1.5])
    curves.reset()
    assert curves.__plot_data__["train"].step == []
    with pytest.raises(UnknownName, match="'tset'; did you mean 'test'"):
        curves.append("tset", 0, 1.0)


def test_curves_are_drawn_into_a_file(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.delenv("DISABLE_PLOT", raising=False)
    curves = Ploter("train")
    curves.append("train", 0, 2.5)
    curves.plot(str(tmp_path / "curve.png"))
    assert (tmp_path / "curve.png").read_bytes()[1:4] == b"PNG"


def test_the_version_has_its_parts():
    assert ".".join((version.major, version.minor, version.patch)) == version.full_version == paddle.__version__


def test_devices():
    assert device.get_device() == "cpu" and device.get_cudnn_version() is None and not device.is_compiled_with_xpu()


def test_old_functions_are_marked_and_modules_imported_by_name(capfd):
    @paddle.utils.deprecated(update_to="paddle.new", since="2.0.0")
    def old():
        return 1
    assert old() == 1 and "take paddle.new" in capfd.readouterr().err
    assert paddle.utils.try_import("math").pi > 3
    with pytest.raises(ImportError, match="pip install no_such_module"):
        paddle.utils.try_import("no_such_module")


def test_files_of_the_network_are_found_where_they_were_placed(tmp_path):
    download = paddle.utils.download
    url = "https://example.org/nets/lenet.pdparams"
    assert download.is_url(url) and not download.is_url("lenet.pdparams")
    with pytest.raises(EnvironmentProblem, match="nothing is fetched from the network; place the file at .*lenet"):
        download.get_path_from_url(url, str(tmp_path))
    (tmp_path / "lenet.pdparams").write_bytes(b"weights")
    assert download.get_path_from_url(url, str(tmp_path)) == str(tmp_path / "lenet.pdparams")
    with pytest.raises(EnvironmentProblem, match="expected abc: place the file"):
        download.get_path_from_url(url, str(tmp_path), md5sum="abc")
