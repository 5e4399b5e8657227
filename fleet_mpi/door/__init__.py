"""The front door, for people who have arrays: ``fleet_mpi.join`` gives a Job.

    joining       join: who works and who serves
    job           the Job: what servers keep, what workers do together, the end
    training      from the first use on: the connection, steps, what is saved and loaded
    parameters    parameters that servers keep, as one worker has them
    tables        a table of rows, as one worker sees it
    gate          arrays from outside, without a copy
    declaring     what is to be kept, collected and checked
    declaration   the same as plain data that travels, and as the terms of connections
    telling       how servers learn of it
    recipes       rules, clipping and decay from what a caller says
    rates         learning rates and schedules
    first_values  rows that servers draw themselves
    keeping       which rows a table keeps, from what a caller says
    values        all that is kept, whole and by name
    saving        files of it
    peers         the other ranks, as a worker sees them
    sums          all-reduce and broadcast of arrays
    averaging     training without servers
    local_update  the worker's own update, where servers only add

Stands on ``connections``, as ``runtime`` does: there is one way through the house. Knows no programs.
"""
