"""HDFS by name only."""

import pytest

from fleet_mpi.data import hdfs
from fleet_mpi.errors import NotBuilt


@pytest.mark.parametrize("call",
                         (lambda: hdfs.HDFSClient("/hadoop", {}), lambda: hdfs.multi_download(None, "a", "b", 0, 1),
                          lambda: hdfs.multi_upload(None, "a", "b")))
def test_every_use_is_refused_with_the_remedy(call):
    with pytest.raises(NotBuilt, match="HDFS is not built; mount the files or copy them to a folder"):
        call()
