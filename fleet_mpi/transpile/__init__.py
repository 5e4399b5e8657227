"""Program -> Programs: what each role runs. Emits op names; imports no run-time.

    distribute_transpiler   DistributeTranspiler: what scripts call
    ops                     ops that only the run-time knows; fingerprints of backward passes

With servers:

    distribution            Distribution: what all processes agree on, as plain data
    reading                 from a training program to a Distribution
    distributing            from a program and a config to a Distribution and the worker's programs
    mode_choice             from a config's flags to a mode and its options
    trainer                 the worker's programs
    lookups                 lookups in tables on servers, merged into few pulls
    growing                 tables with a row for any id, as a program describes them
    server_program          a server's programs
    server_blocks           their blocks of schedules and tables
    server_values           values of shards between a scope and a server's tables
    vars_distributed        where every variable lies, in the original's records
    print_log               what ``print_log = True`` logs

Without servers:

    collective              gradients summed over all workers
    collective_modes        the transpiler's modes ``nccl2`` and ``collective``
    gradient_merge          sums of merged gradients
    local_sgd               parameters averaged after some steps
    deep_compression        the largest gradients only
"""
