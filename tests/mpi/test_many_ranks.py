"""The size that a guide names: 20 servers and 50 workers, in one process over loopback and as one mpirun."""

import re

from tests.exact.averaging import averaged, differences, digest
from tests.exact.cells import CELLS, Layout
from tests.exact.spread import over_loopback
from tests.mpi.jobs import run_job

SCRIPT = """
import numpy as np, paddle.fluid as fluid
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet

fleet.init()
x, y = fluid.layers.data(name="x", shape=[10]), fluid.layers.data(name="y", shape=[1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), fluid.DistributeTranspilerConfig()).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    fleet.init_worker()
    exe = fluid.Executor()
    exe.run(fleet.startup_program)
    for step in range(5):
        rows = np.random.RandomState(fleet.worker_index()).normal(size=(8, 10)).astype("float32")
        exe.run(fleet.main_program, feed={"x": rows, "y": rows.sum(1, keepdims=True)})
    weights = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    print("worker", fleet.worker_index(), weights.tobytes().hex())
    fleet.stop_worker()
"""


def test_20_servers_and_50_workers_have_the_bits_of_one_process():
    state, servers = over_loopback(CELLS["momentum"], Layout(50, 20, "RoundRobin", True))
    one_process = averaged(CELLS["momentum"], 50)
    assert len(servers) == 20 and digest(state) == digest(one_process), differences(state, one_process)


def test_mpirun_with_70_ranks(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    ended = run_job(70, ["-m", "fleet_mpi", path], timeout=300,
                    env={"FLEET_MPI_SERVERS": "20", "FLEET_MPI_THREADS": "1", "FLEET_MPI_LOG": "warning"})
    assert ended.code == 0, ended.story()
    said = re.findall(r"^worker (\d+) (\w+)$", ended.out, re.M)
    assert sorted(int(worker) for worker, _ in said) == list(range(50))
    assert len({weights for _, weights in said}) == 1
