"""What tests of exactness share.

    cells, recurrent_cells, resnet_halves, collective_networks    what is trained
    averaging, summing                                            one process that does what the workers do together
    spread, together, threads_as_workers, collective_workers      the same over loopback and over ranks
    flows, collective_flows                                       the same as scripts, for mpirun
    reducing                                                      every way to sum
"""
