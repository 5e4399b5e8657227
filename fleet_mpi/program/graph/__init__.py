"""Programs as data: nothing runs here.

    program         blocks of ops, the default programs, the guards that choose where layers write
    attachment      a program's part in a job
    block           variables and ops in order
    operator        one op: which variables it reads and writes; ``operator_desc`` shows it as the original does
    variable        Variable and Parameter: descriptions without values
    registry        the op table: slots, shape rule, computation and gradient of every type; ``op_protos`` shows it
    runners         functions of higher rooms that run what a program is part of
    types           kinds of variable and of element; ``element_types``: which of them an op takes
    unique_name     names that no other variable has
    lod             nested sequence boundaries
    structures      nested lists and dictionaries of variables
    sync_batch_norm     batch norm ops that become those of all workers
    serialize       programs as bytes
    drawing, model_stat, op_counts, version     for scripts that ask
"""
