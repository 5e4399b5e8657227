"""Fleet: roles, strategies, and the facade that scripts call. In one process every role is worker 0 of 1.

The objects that scripts call:

    facade                  fleet of 1.x
    pslib                   fleet of 1.x with pslib's servers
    paddle2                 fleet of 2.x
    together                ``fleet.util``: exchanges between processes, file shards
    communicator            Communicator: starts and stops the sending of gradients by hand (1.x)
    parallel_env            rank and world size without a fleet (2.x)

Roles:

    roles                   what every role maker can do
    role_makers             roles from MPI, from arguments, from the environment

Strategies:

    strategy                DistributedStrategy of 2.x
    selection               which of its switches apply together
    transpiler_strategies   strategies of the 1.x fleet with servers
    collective_strategy     strategy of the 1.x collective fleet
    entries                 when a sparse table admits an id
    without_effect          what scripts may set and nothing follows from

Training:

    optimizer               what ``distributed_optimizer`` returns
    application             from an optimizer and a strategy to the optimizer that trains
    job                     a job with servers: what this process runs, saves and ends with
    collective_job          the same without servers
    preemption              training that stops when asked to, and resumes
    collective_checkpoints  numbered checkpoints of the 1.x collective fleet
    batch_sampling          DistributedBatchSampler: a worker's part of a dataset
    inference               DistributedInfer

Metrics and tools:

    metrics                 metrics over all workers
    click_metrics           metrics of click models from sums over all samples
    fleet_util              FleetUtil of 1.x
    saved_programs          saved programs read, compared, tried, drawn
    key_value_server        keys and values by HTTP
"""
