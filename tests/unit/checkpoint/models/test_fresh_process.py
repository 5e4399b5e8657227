"""A saved model answers in a fresh process that never touches MPI."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fleet_mpi import fluid

ROOT = Path(__file__).parents[4]
ANSWER = """
import sys
import numpy as np
from fleet_mpi import fluid
exe = fluid.Executor(fluid.CPUPlace())
program, feeds, fetches = fluid.io.load_inference_model("model", exe)
before = sorted(set(sys.modules) & {"numba", "cupy"})
answer, = exe.run(program, feed={feeds[0]: np.ones((2, 3), "float32")}, fetch_list=fetches)
print(answer.tolist(), before, [name for name in sys.modules if name.split(".")[0] == "mpi4py"])
"""


IMPORT = """
import time
from fleet_mpi import fluid
fluid.io.load_inference_model
print(time.process_time())
"""


def fresh(program, folder):
    """Run a program in a process that knows nothing but where the package is."""
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=120,
                          env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(folder)})


@pytest.mark.slow
def test_a_fresh_process_answers_without_mpi(tmp_path):
    x = fluid.layers.data("x", [3])
    y = fluid.layers.fc(x, 2, act="softmax")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path / "model"), ["x"], [y], exe)
    want, = exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[y])
    ended = fresh(ANSWER, tmp_path)
    assert (ended.stdout, ended.stderr) == (f"{want.tolist()} [] []\n", "")


def test_importing_takes_less_than_a_second_of_cpu(tmp_path):
    # All of the process, the interpreter's start included; neighbours of this machine slow it down, so one may suffice.
    assert any(float(fresh(IMPORT, tmp_path).stdout) < 1.0 for _ in range(4))
