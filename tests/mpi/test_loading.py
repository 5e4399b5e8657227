"""Loaders with worker processes in jobs: every rank has its share, its own processes, and leaves none behind."""

import json
import re
import textwrap
import time

from tests.mpi.jobs import ROOT, run_job

SCRIPT = str(ROOT / "tests" / "scripts" / "distributed_batches.py")
KILLED = """
    import os, signal, time
    import numpy as np
    import fleet_mpi.paddle as paddle
    from fleet_mpi.paddle.distributed import fleet
    from fleet_mpi.paddle.io import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, idx):
            time.sleep(100 if idx > 3 else 0)  # in the middle of a sample when its rank is killed
            return np.array([os.getpid()])

    fleet.init(is_collective=True)
    for number, (pids,) in enumerate(DataLoader(Slow(), num_workers=2)):
        print("worker process", int(pids[0, 0]), flush=True)
        if number == 3:
            fleet.util.barrier()
            time.sleep(0.5)
            if fleet.worker_index() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
"""


def test_ranks_share_a_dataset_out_and_train_alike():
    ended = run_job(2, ["-m", "fleet_mpi", SCRIPT], timeout=100)
    assert ended.code == 0, ended.story()
    found = re.findall(r"worker=(\d) of=2 batches=6 first=(\S+) last=(\S+) seen (\[.*\])", ended.out)
    assert [worker for worker, *_ in found] == ["0", "1"], ended.story()
    assert sorted(sum((json.loads(seen) for *_, seen in found), [])) == list(range(120))
    assert all(float(last) < float(first) / 10 for _, first, last, _ in found), ended.story()


def test_a_killed_rank_leaves_no_worker_process(tmp_path):
    (tmp_path / "killed.py").write_text(textwrap.dedent(KILLED))
    ended = run_job(2, ["killed.py"], cwd=tmp_path, timeout=60)
    assert ended.code not in (0, None), ended.story()
    workers = set(map(int, re.findall(r"worker process (\d+)", ended.out)))
    assert len(workers) == 4, ended.story()
    deadline = time.monotonic() + 10
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, workers))


def is_alive(pid):
    """Whether a process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
