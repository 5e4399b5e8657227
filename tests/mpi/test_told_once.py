"""What concerns a whole job or machine is said by one of its ranks."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.mpi.jobs import ROOT, run_job

LINE = "-m", "fleet_mpi.examples.fit_a_line", "--passes", "1"
# As root file modes do not bind: the copy is mounted over itself, read-only, for this process alone.
MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


def told(ended, words):
    """How many lines of a job have these words; it has begun to train."""
    assert "mean loss" in ended.out, ended.story()
    return ended.err.count(words)


def test_a_misspelt_setting():
    ended = run_job(4, LINE, env={"FLEET_MPI_THREDS": "1", "FLAGS_rpc_dealine": "9000"})
    for words in ("FLEET_MPI_THREDS means nothing here; did you mean FLEET_MPI_THREADS?",
                  "FLAGS_rpc_dealine means nothing here; did you mean FLAGS_rpc_deadline?"):
        assert told(ended, words) == 1, ended.story()


def test_one_rank_that_trains_alone():
    assert told(run_job(1, LINE), "one rank was started: it trains alone") == 1
    assert told(run_job(2, LINE), "it trains alone") == 0
    assert told(run_job(1, [*LINE, "--mode", "collective"]), "it trains alone") == 0


def test_a_folder_for_compiled_kernels(tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "fleet_mpi", copy / "fleet_mpi", ignore=shutil.ignore_patterns("__pycache__"))
    wrapped = ("unshare", "--mount", "sh", "-c", MOUNTED, str(copy))
    if os.geteuid() or subprocess.run([*wrapped, "true"], capture_output=True).returncode:
        pytest.skip("only root may mount a copy read-only; tests/unit/kernels/test_cache_folder.py changes modes "
                    "instead")
    (tmp_path / "tmp").mkdir()
    script = tmp_path / "kernel.py"
    script.write_text("import numpy as np\nfrom fleet_mpi.ranks import cluster\ncluster.world()\n"
                      "from fleet_mpi.kernels.numba.elementary import _exp32\nprint('mean loss', "
                      "_exp32(np.float32(0)))\n")
    ended = run_job(2, [script], python=(*wrapped, sys.executable),
                    env={"HOME": str(copy), "PYTHONPATH": str(copy), "TMPDIR": str(tmp_path / "tmp")})
    assert ended.code == 0 and told(ended, "export NUMBA_CACHE_DIR=FOLDER") == 1, ended.story()
    assert [path.name for path in (tmp_path / "tmp").glob("fleet_mpi-*")] == [f"fleet_mpi-{os.geteuid()}"]
