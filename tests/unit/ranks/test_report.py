"""What a rank reports to its watcher, if it has one."""

import os
import subprocess
import sys

import pytest

from fleet_mpi.ranks import report


def test_without_a_watcher_nothing_is_reported(monkeypatch):
    monkeypatch.delenv("FLEET_MPI_LAUNCH_REPORT", raising=False)
    report.tell(report.JOINED, "worker 0")
    monkeypatch.setenv("FLEET_MPI_LAUNCH_REPORT", "9999")
    report.tell(report.JOINED, "worker 0")


@pytest.mark.parametrize("code, heard", (
    ("report.tell(report.JOINED, 'worker 0')", b"joined worker 0\nends\n"),
    ("import sys; sys.exit(3)", b"ends\n"),
    ("import os; os._exit(0)", b""),
    ("import os\nif os.fork() == 0: raise SystemExit\nos.wait(); os._exit(0)", b"")))
def test_an_end_in_order_is_reported_by_the_rank_itself_only(code, heard):
    start, line = os.pipe()
    subprocess.run([sys.executable, "-c",
                    "from fleet_mpi.ranks import report; report.promise_to_end(lambda: False)\n" + code],
                   pass_fds=(line,), env={**os.environ, "FLEET_MPI_LAUNCH_REPORT": str(line)}, timeout=60)
    os.close(line)
    with open(start, "rb") as file:
        assert file.read() == heard
