"""Training without servers: every rank is a worker, and gradients are summed over all of them.

    group               the workers of a job, and waiting for them
    buckets             which gradients travel together
    choosing            which reducer sums the buckets of a job

Reducers, one file each:

    reducer             the seam: what sums arrays over all workers
    exact               in rank order, each rank adding up a chunk
    direct              in rank order, for short arrays: every rank sends to all
    shared_memory       in rank order, in memory that the workers of one machine share
    by_node             within each node, then between nodes
    library             by the MPI library, in its own order
    half                as float16 on the way
    nccl_backend        by NCCL, through cupy

Arrays on devices:

    device_reducers     what the workers can do with their devices, and the reducers that follow from it
    exact_on_devices    in rank order, added up by a kernel on the device
    staging             copies in pinned host memory where MPI cannot read the device
    cuda_awareness      whether the loaded MPI library says that it takes GPU buffers
    cuda_trial          whether it really does: a process of its own tries

Other exchanges:

    broadcast           one rank's array to all others
    gathering           every rank's array to all others
    batch_statistics    mean and variance over the batches of all workers
    local_sgd           when workers average their parameters
    deep_compression    the largest gradients only

Knows arrays, no programs.
"""
