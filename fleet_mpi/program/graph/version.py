"""Which version of the original the names stand for, for scripts that ask."""

import re

from fleet_mpi.errors import EnvironmentProblem, UsageError

# Names of later versions may be missing; those that training scripts used up to this one are here.
STANDS_FOR = "2.0.2"


def require_version(min_version, max_version=None):
    """Raise unless the version whose names these are lies between two others (bounds included)."""
    mine, least = _numbers(STANDS_FOR), _numbers(min_version)
    most = _numbers(max_version) if max_version is not None else mine
    if not least <= mine <= most:
        raise EnvironmentProblem(f"this script wants paddle {min_version} to {max_version or 'any'}; the names here "
                                 f"are those of {STANDS_FOR}")


def _numbers(version):
    if not isinstance(version, str) or not re.fullmatch(r"\d+(\.\d+){0,3}", version):
        raise UsageError(f"require_version: expected a text such as '1.8.5', got {version!r}")
    parts = [int(part) for part in version.split(".")]
    return parts + [0] * (4 - len(parts))
