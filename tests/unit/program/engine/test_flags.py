"""Settings changed from a script."""

import pytest

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.program.engine import flags


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setattr(settings, "_overrides", {})
    monkeypatch.setattr(flags, "_without_effect", {})


def test_a_flag_that_means_something_is_a_setting():
    flags.set_flags({"FLAGS_check_nan_inf": True})
    assert settings.get("FLAGS_check_nan_inf") is True
    assert flags.get_flags("FLAGS_check_nan_inf") == {"FLAGS_check_nan_inf": True}


def test_a_flag_that_means_nothing_is_kept_and_said_once(capsys):
    flags.set_flags({"FLAGS_cudnn_deterministic": 1})
    flags.set_flags({"FLAGS_cudnn_deterministic": 0})
    assert flags.get_flags(["FLAGS_cudnn_deterministic"]) == {"FLAGS_cudnn_deterministic": 0}
    assert capsys.readouterr().err == "fleet_mpi: set_flags: FLAGS_cudnn_deterministic has no effect here\n"
    flags.set_flags({"FLAGS_check_nan_ifn": 1})
    assert capsys.readouterr().err == ("fleet_mpi: set_flags: FLAGS_check_nan_ifn has no effect here; did you mean "
                                       "FLAGS_check_nan_inf?\n")


def test_what_is_no_flag_is_refused():
    with pytest.raises(UsageError, match="expected a dictionary"):
        flags.set_flags(["FLAGS_check_nan_inf"])
    with pytest.raises(UsageError, match="flags are called 'FLAGS_...', got 'verbose'"):
        flags.set_flags({"verbose": 1})
    with pytest.raises(EnvironmentProblem, match="no setting is called 'never_set'"):
        flags.get_flags("never_set")
    with pytest.raises(EnvironmentProblem, match="FLAGS_check_nan_inf"):
        flags.get_flags("FLAGS_check_nan_ifn")


def test_a_flag_that_means_nothing_has_the_value_of_the_environment_or_none(monkeypatch):
    monkeypatch.setenv("FLAGS_cudnn_exhaustive_search", "1")
    assert flags.get_flags(["FLAGS_cudnn_exhaustive_search", "FLAGS_eager_delete_tensor_gb"]) == {
        "FLAGS_cudnn_exhaustive_search": "1", "FLAGS_eager_delete_tensor_gb": None}
