"""Who keeps and serves parameters.

    description       what the clients and servers of a job agree on, and its variables by name
    recipes           how a variable is updated
    tables/           what a server keeps, by kinds: one file each
    flat              where variables lie in flat arrays
    messages          what the messages hold
    client            a worker's requests
    requests          the parts, buffers and tickets of requests
    row_requests      rows in requests
    control_requests  requests besides training
    server            a server: requests in, pushes to the mode, answers out
    inbox             a server's end of the way from one worker
    preallocated      the way of small models, for both sides
    norms             updates that need norms over all servers
    snapshots         a server's part in saving and loading
    shrinking         a server's part in dropping rows on request
    state             what the servers keep, as a worker reads and writes it
    wholes            how one value is made up of what each server keeps of it
    row_loads         the rows of a table that grows, on their way to its servers
    agreement         what two ranks believe of their job, compared
    attendance        servers that begin, and processes that leave without having taken part
    stalls            whom a server calls late
    interruption      exceptions from outside in the middle of a request
"""
