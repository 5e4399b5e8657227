"""HDFS by name only: scripts import it even where they read local files."""

from fleet_mpi.errors import NotBuilt

_REMEDY = "HDFS is not built; mount the files or copy them to a folder, and give their paths"


class HDFSClient:
    """Refuses to be made: there is no HDFS here."""

    def __init__(self, hadoop_home, configs):
        raise NotBuilt(f"HDFSClient: {_REMEDY}")


def multi_download(client, hdfs_path, local_path, trainer_id, trainers, multi_processes=5):
    """Refuse: there is no HDFS here."""
    raise NotBuilt(f"multi_download: {_REMEDY}")


def multi_upload(client, hdfs_path, local_path, multi_processes=5, overwrite=False, sync=True):
    """Refuse: there is no HDFS here."""
    raise NotBuilt(f"multi_upload: {_REMEDY}")
