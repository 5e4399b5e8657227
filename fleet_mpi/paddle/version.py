"""``paddle.version``: the version whose names these are."""

from fleet_mpi import notices as _notices
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.graph.version import STANDS_FOR as full_version

major, minor, patch = full_version.split(".")
rc, istaged, with_mkl = "0", True, "OFF"
commit = "fleet_mpi"


def mkl():
    """OFF: products come from numpy's BLAS."""
    return with_mkl


def show():
    """Log the version."""
    _notices.log().warning("paddle's names as of %s, by fleet_mpi", full_version)


__getattr__ = _missing_name("paddle.version", globals())
