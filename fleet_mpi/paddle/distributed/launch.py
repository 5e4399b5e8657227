"""``python -m paddle.distributed.launch``: says how a job is started as long as there is no launcher."""

from fleet_mpi.errors import NotBuilt
from fleet_mpi.errors import missing_name as _missing_name


def launch():
    """Refuse, with the command that starts a job."""
    raise NotBuilt("paddle.distributed.launch: the launcher is not built yet; start the job with "
                   "mpirun -np N python -m fleet_mpi train.py")


__getattr__ = _missing_name("paddle.distributed.launch", globals())

if __name__ == "__main__":
    launch()
