"""Who is there, and whether it lives.

    cluster         MPI's world, and the job that its ranks agree on when they join
    channels        every stream of messages, by its MPI tag
    roster          what each rank says about itself, and who that makes whom
    roles           who serves and who works, by rank or as PADDLE_* variables say
    arriving        before MPI starts: the ranks of a machine wait for each other
    waiting         the one polling loop, its pauses and the deadline
    liveness        the rules: how long is too long, who is blamed, who reports; what equal workers tell each other
    policy          what the loss, stall or leave of a rank, and a signal, lead to
    meeting         waits of all ranks for each other, and what they exchange there
    ending          a failure takes all ranks down with one sentence; an end in order says goodbye
    lifeline        a rank's connection to the watcher of its machine
    watcher         the process beside a machine's ranks that reports what they cannot
    beats           machines show each other that they live
    pending_requests  requests that MPI works on, kept until they are over
    preemption      the wish that a job make room
    report          what a rank tells our launcher
    devices         one rank, one device
    nvml            how many GPUs the driver counts
    library         which MPI this is, and whether the launcher belongs to it
    manual_start    the one mpirun line for processes that were started by hand
    slurm_step      what srun tells a process of its step
"""
