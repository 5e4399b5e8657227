"""A rank of a job on devices in which one is lost: ``lost_rank.py FOLDER RANK kill|stop``.

Every rank notes in the folder which segments of /dev/shm it has mapped; the one that is lost notes the time.
"""

import os
import re
import signal
import sys
import time
from pathlib import Path

import fleet_mpi.paddle as paddle
from fleet_mpi import fluid, settings
from fleet_mpi.paddle.distributed import fleet
from tests.gpu.ways_rank import batch, minimized

LOST_AT = 3
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def main(folder, lost, how):
    """Train for ever."""
    paddle.enable_static()
    fleet.init(is_collective=True)
    # Wide enough for deep gradient compression to take part.
    loss = minimized(4096, dgc=True) if os.environ.get("LOST_DGC") else minimized()
    exe = paddle.static.Executor(paddle.CUDAPlace())
    exe.run(fluid.default_startup_program())
    step = 0
    while True:
        exe.run(fluid.default_main_program(), feed=batch(step), fetch_list=[loss])
        step += 1
        if step == LOST_AT:
            note_segments(folder)
            # From here on only: the first steps compile.
            settings.put("FLAGS_rpc_deadline", int(os.environ.get("LOST_DEADLINE_MS", "60000")))
        if step == LOST_AT and fleet.worker_index() == int(lost):
            Path(folder, "at").write_text(str(time.time()))
            os.kill(os.getpid(), SIGNALS[how])


def note_segments(folder):
    """Leave a file for every segment that this rank has mapped."""
    for name in re.findall(r" /dev/shm/(\S+)$", Path("/proc/self/maps").read_text(), re.M):
        Path(folder, f"segment-{name}").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
