"""A job has its folder of logs for itself, as long as it runs."""

import os
import subprocess
import sys

import pytest

from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.launch.log_folder import LogFolder, claim


def test_jobs_at_the_same_time_get_folders_of_their_own_and_later_ones_the_first(tmp_path, capsys):
    asked = str(tmp_path / "log")
    jobs = [claim(asked, False) for _ in range(3)]
    assert [job.path for job in jobs] == [asked, asked + ".2", asked + ".3"]
    assert capsys.readouterr().err.count("another job writes its logs to") == 2
    for job in jobs:
        job.release()
    assert claim(asked, False).path == asked


def test_the_folder_of_a_job_that_was_killed_is_free(tmp_path):
    asked = str(tmp_path / "log")
    program = f"import os; from fleet_mpi.launch.log_folder import claim; claim({asked!r}, True); " \
              f"os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == -9 and os.path.isdir(asked)
    assert claim(asked, True).path == asked


def test_a_job_may_keep_no_logs():
    assert claim("", True) == LogFolder()


def test_a_folder_that_cannot_be_is_refused_if_it_was_asked_for(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match="say another by --log_dir"):
        claim(str(tmp_path / "file"), True)
    assert claim(str(tmp_path / "file"), False) == LogFolder() and "keeps no logs" in capsys.readouterr().err
