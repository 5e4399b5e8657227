"""``paddle.utils.download``: files by their address, found where they were placed; nothing is fetched."""

import os as _os

from fleet_mpi.data.home import md5file
from fleet_mpi.errors import EnvironmentProblem as _EnvironmentProblem
from fleet_mpi.errors import missing_name as _missing_name

WEIGHTS_HOME = _os.path.expanduser("~/.cache/paddle/hapi/weights")
DOWNLOAD_RETRY_LIMIT = 3


def is_url(path):
    """Whether a text is the address of a file in the network."""
    return path.startswith(("http://", "https://"))


def get_weights_path_from_url(url, md5sum=None):
    """The path of saved weights, placed under ``WEIGHTS_HOME``."""
    return get_path_from_url(url, WEIGHTS_HOME, md5sum)


def get_path_from_url(url, root_dir, md5sum=None, check_exist=True):
    """The path of the file in ``root_dir``, where somebody has placed it; with ``md5sum``, just that one."""
    path = _os.path.join(root_dir, url.rpartition("/")[2])
    if not _os.path.exists(path):
        raise _EnvironmentProblem(f"{url}: nothing is fetched from the network; place the file at {path}")
    if md5sum and _os.path.isfile(path) and md5file(path) != md5sum:
        raise _EnvironmentProblem(f"{path}: its md5 is {md5file(path)}, expected {md5sum}: place the file of "
                                  f"{url} there")
    return path


__getattr__ = _missing_name("paddle.utils.download", globals())
