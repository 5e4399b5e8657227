"""Tests that need a GPU, or the emulation of one: skipped where there is neither.

    python -m tests.gpu_emulation.build FOLDER && . FOLDER/env.sh
    python -m pytest tests/gpu

    test_emulation.py      the emulation itself
    test_findings.py       what cupy does otherwise than numpy
    test_counts.py         launches, copies and waits of a step
    test_commands.py       doctor and gpu-check
    test_ways.py           ranks: every way to sum, and NCCL's calls (nccl_calls.py); ways_rank.py is a rank
    test_own_devices.py    ranks: each has a device of its own; own_device_rank.py is a rank
    test_lost_peers.py     ranks: one is lost; lost_rank.py is a rank
    test_ranks.py          ranks: the inside-tests of tests/mpi, ResNet-18, and wide_and_deep with servers
    device_jobs.py         starts ranks

To add one: a test of a single process takes cupy and ``CUDAPlace`` as a user does; counts come from
``tests.gpu_emulation.counters`` (ask for the fixture ``emulation``). A test of ranks starts them by
``device_jobs.run_on_devices``: as many emulated devices as ranks, each rank on its own, immediate or asynchronous.
"""
