"""fleet_mpi: train models with parameter servers or collectives, over MPI.

Five questions, five folders:

    program/            what is computed
    placement/          where each row lives
    wire/               how bytes move
    parameter_server/   who keeps parameters
    modes/              when parameters move

Where they meet:

    transpile/          from one training program to the programs of each role
    connections/        a process's part in a job, over plain arrays
    runtime/            scopes bound to connections, and the ops that send
    collective/         sums over equal workers: training without servers
    ranks/              who is there, and whether it lives

What scripts and people call:

    door/               for people with arrays: ``join``, which is imported when it is first asked for
    fluid/, paddle/     the names of 1.x and of 2.x
    names/              ``paddle`` for plain Python, where it was installed
    torch/              PyTorch's door, on stock wheels
    fleet/              roles, strategies and the fleet objects
    hapi/               paddle.Model
    launch/             fleetrun, and the commands ``doctor``, ``plan``, ``names`` and ``export``
    __main__            ``python -m fleet_mpi train.py``: runs a script written for ``paddle`` with those names
    examples/           models of the guides, ready to run

Around training:

    data/               readers, data sets, loaders
    checkpoint/         saved variables and programs
    export/             saved models as safetensors, npz and ONNX
    metrics/            accumulators that a script keeps

Below all of it:

    kernels/            hot loops
    update_rules        the optimizers' arithmetic, for ops and servers alike
    arrays              numpy's and cupy's arrays behind one gate
    settings            every environment variable that is read
    errors              kinds of error and their exit codes
    notices             log lines
    command_line        the parser that all commands share
    testing/            a strict stand-in for device arrays

Importing this package starts nothing: no MPI, no thread, no compilation.
"""

import importlib
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "join":
        return importlib.import_module("fleet_mpi.door.joining").join
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
