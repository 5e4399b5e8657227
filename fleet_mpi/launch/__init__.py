"""Starting jobs: what ``fleetrun`` will do. Knows command lines; starts no MPI in its own process."""

import sys

from fleet_mpi.errors import EnvironmentProblem


def main():
    """Entry point of ``fleetrun``: say which command starts a job as long as there is no launcher."""
    sys.stderr.write("fleetrun: the launcher is not built yet; start the job with "
                     "mpirun -np N python -m fleet_mpi train.py\n")
    return EnvironmentProblem.exit_code
