"""A process's part in a job, over plain arrays: without Program or Scope.

    terms       what all processes of a job with servers agree on: plain data
    members     the ranks of a job by name, their transport, and the exit of one that took no part
    worker      a worker's part: flat parameters and gradients, moved as the mode says
    server      a server's part: its life, or servers within the process of their only worker
    equal       an equal worker's part in a job without servers: buckets of gradients, summed over all

``runtime`` binds scopes to these.
"""
