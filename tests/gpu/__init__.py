"""Tests that need a GPU, or the emulation of one: skipped where there is neither.

    python -m tests.gpu_emulation.build FOLDER && . FOLDER/env.sh
    python -m pytest tests/gpu

To add one: a test of a single process takes cupy and ``CUDAPlace`` as a user does; counts come from
``tests.gpu_emulation.counters`` (ask for the fixture ``emulation``). A test of ranks starts them by
``device_jobs.run_on_devices``: as many emulated devices as ranks, each rank on its own, immediate or asynchronous.
"""
