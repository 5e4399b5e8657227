"""A rank that is lost while devices sum: it is named, the job ends in time, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleet_mpi.errors import PeerLost, Stalled
from tests.gpu.device_jobs import HERE, environment, run_on_devices
from tests.mpi.jobs import ROOT, clean_environment, run_job

SOON_S = 15  # from the loss to the end, on a machine that does other things too
DEADLINE_MS = 3000
both = pytest.mark.parametrize("asynchronous", (False, True), ids=("immediate", "asynchronous"))


def left_behind(folder):
    """Segments that ranks had mapped, and that are still there some seconds after the job's end."""
    noted = [path.name.removeprefix("segment-") for path in Path(folder).glob("segment-*")]
    until = time.monotonic() + 3   # as tests/mpi/faults: the watcher of a machine is the last to go
    while (left := [name for name in noted if os.path.exists(f"/dev/shm/{name}")]) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def seconds_since_the_loss(folder):
    return time.time() - float(Path(folder, "at").read_text())


@pytest.mark.parametrize("ranks, way, asynchronous", ((2, "nccl", False), (4, "nccl", True), (2, "exact", True),
                                                      (2, "fast", False)))
def test_a_killed_rank_is_named_and_the_job_ends(tmp_path, ranks, way, asynchronous):
    ended = run_job(ranks, [HERE / "lost_rank.py", tmp_path, "1", "kill"], via="launch", timeout=120,
                    env=environment(ranks, asynchronous, FLEET_MPI_ALLREDUCE=way))
    assert seconds_since_the_loss(tmp_path) < SOON_S, ended.story()
    assert ended.code == PeerLost.exit_code, ended.story()
    assert "rank 1 (worker 1) on " in ended.err and "was killed by signal 9" in ended.err, ended.story()
    assert f"all-reduce: {way}" in ended.err, ended.story()
    assert left_behind(tmp_path) == []


# With DGC the host reads the device between the sums and the updates.
@pytest.mark.parametrize("ranks, asynchronous, dgc", ((2, False, ""), (4, True, ""), (2, True, "yes")))
def test_a_rank_that_stands_still_is_named_after_the_deadline(tmp_path, ranks, asynchronous, dgc):
    ended = run_on_devices(ranks, "lost_rank.py", tmp_path, "1", "stop", asynchronous=asynchronous, timeout=120,
                           FLEET_MPI_ALLREDUCE="nccl", LOST_DEADLINE_MS=str(DEADLINE_MS), LOST_DGC=dgc)
    assert seconds_since_the_loss(tmp_path) < DEADLINE_MS / 1000 + SOON_S, ended.story()
    assert ended.code == Stalled.exit_code, ended.story()
    said = [line for line in ended.err.splitlines() if line.startswith("fleet_mpi: rank ") and "Stalled" in line]
    assert len(said) == 1 and " for worker 1 (rank 1, " in said[0], ended.story()
    assert left_behind(tmp_path) == []


# One rank of NCCL without a launcher, which would end the others at once: RANK SIZE FILE.
ALONE = """
import os, pathlib, signal, sys, time
from fleet_mpi import arrays
from fleet_mpi.collective.nccl_backend import NcclAllReduce, module_for
from fleet_mpi.errors import PeerLost
rank, size, path = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
cupy = arrays.cupy_module()
nccl = module_for(cupy)
if rank == 0:
    path.with_suffix(".part").write_bytes(nccl.get_unique_id())
    path.with_suffix(".part").rename(path)
while not path.exists():
    time.sleep(0.01)
cupy.cuda.Device(rank).use()
one = NcclAllReduce(cupy, nccl, rank, size, path.read_bytes())
try:
    for number in range(2):
        array = cupy.ones(10, "float32")
        assert one.start(array).is_over()   # for the host; the device is still at it
        on_device = one.left_behind.pop()
        while not on_device.is_over():
            on_device.advance()
        print("summed", array.get().tolist()[0], flush=True)
        if rank == 1:
            while not path.with_suffix(".summed").exists():   # rank 0 looks for lost peers before it looks for its sum
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        path.with_suffix(".summed").touch()
except PeerLost as error:
    print("lost:", error)
try:
    one.start(cupy.ones(10, "float32"))
except PeerLost as error:
    print("after:", error)
cupy.cuda.get_current_stream().synchronize()
print("over")
"""


def start_alone(size, folder, asynchronous):
    """The first two ranks of NCCL."""
    return [subprocess.Popen([sys.executable, "-c", ALONE, str(rank), str(size), str(folder / "id")],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
                             env={**clean_environment(), **environment(size, asynchronous)}) for rank in range(2)]


@both
def test_nccl_tells_of_a_lost_peer_and_is_given_up(emulation, tmp_path, asynchronous):
    first, second = start_alone(2, tmp_path, asynchronous)
    (out, err), (other, _) = first.communicate(timeout=120), second.communicate(timeout=120)
    assert (first.returncode, second.returncode, other) == (0, -signal.SIGKILL, "summed 2.0\n"), out + err
    summed, lost, after, over = out.splitlines()
    assert (summed, over) == ("summed 2.0", "over")
    assert lost.startswith("lost: worker 0: NCCL gave up an all-reduce of 40 bytes: NCCL_ERROR_REMOTE_ERROR"), out
    assert after.startswith("after: worker 0: NCCL was given up after a failure"), out


def test_nccl_tells_of_a_peer_that_is_lost_before_all_have_met(emulation, tmp_path):
    first, second = start_alone(3, tmp_path, asynchronous=False)
    give_up_at = time.monotonic() + 60
    while "emulated-nccl" not in Path(f"/proc/{second.pid}/maps").read_text() and time.monotonic() < give_up_at:
        time.sleep(0.05)
    second.kill()
    _, err = first.communicate(timeout=60)
    second.communicate()
    assert "NCCL_ERROR_REMOTE_ERROR" in err.splitlines()[-1] and "rank 1 has ended" in err, err
