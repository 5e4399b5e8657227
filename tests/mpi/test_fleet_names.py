"""FleetUtil, fleet.metrics and the role makers' words in a real job: sums of all workers, the same on each."""

import json

from tests.mpi.jobs import run_job

SCRIPT = """
import json
import numpy as np
import paddle.fluid as fluid
from paddle.fluid.communicator import Communicator
from paddle.fluid.incubate.fleet.base.role_maker import GeneralRoleMaker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory
from paddle.fluid.incubate.fleet.utils.fleet_barrier_util import check_all_trainers_ready
from paddle.fluid.incubate.fleet.utils.fleet_util import FleetUtil

role = GeneralRoleMaker(path="./tmp", init_timeout_seconds=10)
fleet.init(role)
x = fluid.layers.data(name="x", shape=[2])
loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr="w"))
fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), StrategyFactory.create_async_strategy()).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    communicator = Communicator(fleet.main_program)
    communicator.start()
    exe.run(fleet.main_program, feed={"x": np.ones((2, 2), "float32")})
    communicator.stop()
    check_all_trainers_ready("unused", 0)

    me, scope = fleet.worker_index() + 1, fluid.global_scope()
    for name, value in dict(stat_pos=[[0, me]], stat_neg=[[me, 1]], sqrerr=[4.0 * me], abserr=[2.0 * me],
                            prob=[1.0 * me], q=[0.0], pos=[1.0 * me], total=[4.0 * me]).items():
        scope.var(name).get_tensor().set(np.array(value), None)
    util = FleetUtil(mode="transpiler")
    found = util.print_global_metrics(scope, "stat_pos", "stat_neg")
    print(json.dumps(dict(
        metrics=found, auc=util.get_global_auc(scope, "stat_pos", "stat_neg"), nodes=role._node_num(),
        rank=role._get_rank(), size=role._get_size(), alone=role._is_non_distributed(),
        gathered=role._worker_gather(me), everyone=role._all_gather(me, "worker"))))
    util.pull_all_dense_params(scope, fleet.main_program)
    util.save_model("models", 20200101, 1)
    fleet.stop_worker()
"""


def test_metrics_of_two_workers_are_those_of_their_sums(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    ended = run_job(3, ["-m", "fleet_mpi", "train.py"], cwd=tmp_path, env={"FLEET_MPI_SERVERS": "1"})
    assert ended.code == 0, ended.story()
    told = [json.loads(rank.out) for rank in ended.ranks if rank.out.strip()]
    assert len(told) == 2 and told[0]["metrics"] == told[1]["metrics"], ended.story()
    # Buckets of both workers: positives 0, 3; negatives 3, 2: of 15 pairs 9 are in order and 6 are ties.
    auc, _, mae, rmse, actual, predicted, copc, q, total = told[0]["metrics"]
    assert auc == told[1]["auc"] == 12 / 15
    assert (mae, rmse, actual, predicted, copc, q, total) == (0.5, 1.0, 0.25, 0.25, 1.0, 0.0, 12)
    assert sorted(one["rank"] for one in told) == [1, 2]
    assert all((one["size"], one["nodes"], one["alone"]) == (3, 1, False) for one in told)
    assert all(one["gathered"] == one["everyone"] == [1, 2] for one in told)
    said = [rank.err.count("global auc=0.8") for rank in ended.ranks]
    assert sum(said) == 1, ended.story()  # worker 0 alone
    assert (tmp_path / "models" / "20200101" / "1" / "w").exists()
