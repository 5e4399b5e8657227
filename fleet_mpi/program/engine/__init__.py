"""Runs programs: from a program and what is fed and fetched to a plan of bound calls.

    executor        finds or makes the plan and runs it; ``dataset_loop`` does so for every batch of a dataset
    plan            a program compiled for one feed signature and fetch list
    liveness        which ops must run, and what each of them needs first
    layout, memory  where temporaries lie, and which of them share memory
    fusion          pairs of ops that one kernel does better; ``schedule_fusion``: learning-rate schedules as one op
    precision       casts of mixed precision, on devices
    update_groups   on a device: updates that follow each other as one call
    constants       on a device: what is written once, when the plan is made
    binding         from an op and a frame to the call that runs it
    frame           names, shapes and values of one plan
    outside         ids and labels that are none, on the host and on devices
    scope           where values live between runs
    feeding, fetched    what scripts give and get
    transfers       feeds, fetches and notes of wrong ids between host and device
    formula         arithmetic element by element, without new memory
    lod_rows        row numbers for sequence ops
    randomness      seeds of every op and run
    places          CPU and GPU
    compiled        CompiledProgram and ParallelExecutor
    flags, profiler, memory_usage   for scripts that ask
"""
