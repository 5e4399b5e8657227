"""The folder that ``python -m fleet_mpi names install`` puts at the end of ``sys.path``; holds ``paddle`` and nothing
else."""
