"""Who is there, and whether it lives.

    cluster         MPI's world, and the job that its ranks agree on when they join
    channels        every stream of messages, by its MPI tag
    roster          what each rank says about itself, and who that makes whom
    arriving        before MPI starts: the ranks of a machine wait for each other
    meeting         waits of all ranks for each other, with a deadline
    ending          a failure takes all ranks down with one sentence; an end in order says goodbye
    lifeline        a rank's connection to the watcher of its machine
    watcher         the process beside a machine's ranks that reports what they cannot
    beats           machines show each other that they live
    in_flight       requests that MPI works on
    preemption      the wish that a job make room
    report          what a rank tells our launcher
    devices         one rank, one device
    library         which MPI this is, and whether the launcher belongs to it
    by_hand, slurm_step     what those say who started a process
"""
