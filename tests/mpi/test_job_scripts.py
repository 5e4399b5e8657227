"""Slurm's job scripts without Slurm: what they make of a script that says nothing of its own."""

import os
import re
import subprocess
import sys

import pytest

from fleet_mpi.launch.mpirun import environment, options
from tests.mpi.jobs import ROOT, clean_environment, mpirun

ROLES = """
import paddle.distributed.fleet as fleet
fleet.init()
print(f"{fleet.worker_num()} workers, {fleet.server_num()} servers, worker {fleet.worker_index()}")
"""
LINE = """
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.base.role_maker import MPISymetricRoleMaker
fleet.init(MPISymetricRoleMaker())
x = fluid.layers.data(name="x", shape=[4])
loss = fluid.layers.mean(fluid.layers.fc(x, 1))
fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
fleet.init_worker()
exe.run(fleet.startup_program)
value, = exe.run(fleet.main_program, feed={"x": [[1.0, 2.0, 3.0, fleet.worker_index()]]}, fetch_list=[loss])
fleet.stop_worker()
print("2 workers, 0 servers, worker %d" % fleet.worker_index())
"""


@pytest.mark.parametrize("script", (ROLES, LINE), ids=("2.x", "1.x with a step"))
def test_every_rank_of_a_collective_job_works_whatever_the_script_says(script, tmp_path):
    found = mpirun()
    (tmp_path / "mpirun").write_text(f'#!/bin/sh\nexec {found.path} '
                                     f'{" ".join(options(found.family, 2, os.cpu_count()))} "$@"\n')
    (tmp_path / "mpirun").chmod(0o755)
    (tmp_path / "train.py").write_text(script)
    env = {**clean_environment(), "SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "here",
           "FLEET_MPI_SERVERS": "1", "PYTHON": sys.executable, "MPIRUN": str(tmp_path / "mpirun")}
    ended = subprocess.run(["bash", ROOT / "slurm" / "collective.sbatch", "train.py"], cwd=tmp_path,
                           capture_output=True,
                           text=True, timeout=60, stdin=subprocess.DEVNULL,
                           env={**env, **environment(found.family, env)})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    said = sorted(re.findall(r"\d workers, \d servers, worker \d", ended.stdout))  # lines of ranks may share one
    assert said == ["2 workers, 0 servers, worker 0", "2 workers, 0 servers, worker 1"], ended.stdout + ended.stderr
