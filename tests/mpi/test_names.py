"""Plain Python runs scripts that import paddle, where ``fleet_mpi/names`` is on its path."""

import os
import re
import shutil

import pytest

from fleet_mpi.names import paddle as on_path
from tests.mpi.jobs import ROOT, run_job

TOLD = f"fleet_mpi: paddle is fleet_mpi here (found in {on_path.FOLDER}; python -m fleet_mpi names)"


@pytest.fixture
def train(tmp_path):
    """Run words in a folder that has a script which imports paddle, with the names on the path."""
    shutil.copy(ROOT / "tests" / "scripts" / "fleet_parameter_server.py", tmp_path / "train.py")
    names = {"PYTHONPATH": os.pathsep.join([str(ROOT), on_path.FOLDER])}
    return lambda *words, **how: run_job(3, words, cwd=tmp_path, env=names, **how)


def test_plain_mpirun_trains_and_one_line_tells_whose_paddle_it_is(train):
    ended = train("train.py")
    assert ended.code == 0, ended.story()
    assert re.search(r"first=(\S+) last=(\S+)", ended.out), ended.story()
    assert ended.err.splitlines().count(TOLD) == 1, ended.story()


def test_the_command_of_the_guides_runs_as_it_stands(train):
    ended = train("-m", "paddle.distributed.launch", "--server_num=1", "--worker_num=2", "train.py", via="command")
    assert ended.code == 0, ended.story()
    assert re.search(r"first=(\S+) last=(\S+)", ended.out), ended.story()


def test_a_rank_that_fails_before_it_starts_mpi_ends_the_job(train, tmp_path):
    (tmp_path / "train.py").write_text("import os, paddle, paddle.distributed.fleet as fleet\n"
                                       "assert os.environ.get('PMIX_RANK', os.environ.get('PMI_RANK')) != '1'\n"
                                       "fleet.init()\n")
    ended = train("train.py", timeout=30)
    assert ended.code == 1 and "fleet_mpi: rank 1 (host" in ended.err, ended.story()
