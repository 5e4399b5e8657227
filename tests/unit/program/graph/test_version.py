"""Scripts that ask for a version of the original."""

import pytest

from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.program.graph.version import require_version


@pytest.mark.parametrize("least, most", (("1.6.0", None), ("1.8", "2.0.2"), ("2.0.2", None), ("0", "2.0.2.0")))
def test_versions_whose_names_are_here_pass(least, most):
    require_version(least, most)


@pytest.mark.parametrize("least, most", (("2.1.0", None), ("1.6", "1.8.5")))
def test_other_versions_are_refused(least, most):
    with pytest.raises(EnvironmentProblem, match="the names here are those of 2.0.2"):
        require_version(least, most)


@pytest.mark.parametrize("version", (2, "two", "1.8.5rc0"))
def test_what_is_no_version_is_refused(version):
    with pytest.raises(UsageError, match="expected a text such as '1.8.5'"):
        require_version(version)
