"""The places of faults that the harness's training scripts have in common: imported by them where their imports begin.

A script calls ``begin`` when it has joined, ``train`` as a worker, and ``watch_server`` before it serves. The fault's
places are the calls of ``at``, and those in ``injection`` itself; some phases are no place but a difference between one
rank's script and the others' (``DIFFERENT``). In the phase "save" worker 0 saves once.
"""

import os
import signal
import time

import injection
from injection import FAULT, FOLDER, IS_IT, PHASE, STEP, at, note, until

from fleet_mpi import settings
from fleet_mpi.ranks import cluster

STEPS = int(os.environ["FAULTS_STEPS"])
SAVED = os.path.join(FOLDER, "saved")
SAVES_AT = 10
ALONE_AT = 8    # steps of the one worker that is left; the others make half of them
FEWER = 2       # steps that one worker does not make
DIFFERENT = PHASE if IS_IT else ""
SAMPLES = []


def begin():
    """This rank has joined the job."""
    injection.watch_finalize()
    if "FAULTS_DEADLINE_MS" in os.environ:
        # From here on only: with more ranks than cores the start of MPI may take longer than a stall is to be waited
        # for.
        settings.put("FLAGS_rpc_deadline", int(os.environ["FAULTS_DEADLINE_MS"]))
    at("after init")


def train(step, save, all_save=False):
    """This worker's steps; ``step()`` makes one, ``save(folder)`` is called by worker 0, or by all."""
    worker = cluster.current().index
    steps = ALONE_AT // 2 if PHASE == "alone" and not IS_IT else STEPS - FEWER * (DIFFERENT == "fewer steps")
    for number in range(steps):
        at_step(number)
        if PHASE == "save" and number == SAVES_AT and (all_save or worker == 0):
            note("saving")
            save(SAVED)
        step()


def at_step(number):
    """The places of the fault in a worker."""
    if number == 0:
        at("first step")
    if number == STEP:
        at("step")
    if number == ALONE_AT:
        at("alone")
    if number == SAVES_AT and cluster.current().index > 0 and DIFFERENT == "save":
        until("saving")
        at("save")


def watch_server():
    """Fail in the middle of what a server does, and measure what it uses while it waits."""
    if IS_IT or FAULT == "nap":
        signal.signal(signal.SIGALRM, while_serving)
        signal.setitimer(signal.ITIMER_REAL, *(2 * [0.1 if FAULT == "nap" else 0.01]))


def while_serving(number, frame):
    """The places of the fault in a server, in the middle of what its main thread does."""
    SAMPLES.append((time.monotonic(), time.process_time()))
    progress = cluster.current().progress  # a function once it serves
    updates = progress() if callable(progress) else 0
    if updates >= 1:
        at("first step")
    if updates >= STEP:
        at("step")
    if os.path.exists(os.path.join(FOLDER, "saving")):
        at("save")


def idleness():
    """The least share of a core that a server used within two seconds."""
    return min((cpu - before_cpu) / (now - before) for before, before_cpu in SAMPLES for now, cpu in SAMPLES
               if now - before >= 2)


if PHASE == "save":
    injection.watch_saving(SAVED)
