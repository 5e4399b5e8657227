"""The suite.

    unit/       one folder for each of fleet_mpi's: no ranks, no network, milliseconds
    exact/      models and ways to train them whose bits must agree: what tests of exactness share
    mpi/        jobs of ranks; ``inside/`` runs within the ranks, ``faults/`` lets ranks fail at random
    slurm/      jobs under a Slurm of their own
    hosts/      jobs over two hosts, which are network namespaces
    scripts/    scripts as users bring them
    golden/     the bits of training, to compare commits by
"""
