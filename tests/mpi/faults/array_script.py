"""What ``script`` is for Paddle scripts, for programs that have arrays: ``fleet_mpi.join``.

FAULTS_DOOR says what servers keep: "arrays", parameters; "growing", beside them a table without height, which gets new
rows at every step. FAULTS_MODE is as there; equal workers (exact, fast) have no servers, and sums of their own too.
"""

import os
import signal
import sys

import injection
from injection import RANK, at

at("start")

import numpy as np  # noqa: E402

import fleet_mpi  # noqa: E402

import places  # noqa: E402  isort: skip

MODE, DOOR = os.environ["FAULTS_MODE"], os.environ["FAULTS_DOOR"]
EQUALS = MODE in ("exact", "fast")
OPTIONS = {"geo": {"k_steps": 5}, "bounded_staleness": {"bound": 4}}


def declared(job):
    """(server, table or None)."""
    server = job.parameter_server({"w": np.zeros((300, 50), "float32"), "b": np.zeros(7)}, "momentum", 0.01,
                                  mode="sync" if EQUALS else MODE, mode_options=OPTIONS.get(MODE))
    return server, job.table("users", 6, rule="adagrad", init=("normal", 0, 1)) if DOOR == "growing" else None


def stepper(job):
    """A function that makes one step."""
    server, table = declared(job)
    grads = {"w": np.full((300, 50), 1.0 + int(RANK), "float32"), "b": np.ones(7)}
    total = {"sum": np.ones(3)}

    def step():
        if table is not None:
            ids = np.arange(4) * 10**12 + job.steps * 7 + int(RANK)
            table.push(ids, table.pull(ids) / 10)
        server.push_pull(grads)
        if EQUALS:
            job.all_reduce(total, "mean")
    return step


at("before init")
joined = fleet_mpi.join(0 if EQUALS else None, serve=False)
places.begin()
if joined.role == "server":
    places.watch_server()
    joined.serve()
    signal.setitimer(signal.ITIMER_REAL, 0)
else:
    stepping = stepper(joined)
    at("after minimize")
    places.train(stepping, joined.save, all_save=True)
    joined.leave()
injection.at("end")
sys.stdout.write("came to the end\n")
