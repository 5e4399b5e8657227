"""Clicks with the parameter-server fleet of 1.x, in the manner of dist_fleet_ctr: started alone, one worker."""

import os
import sys
import tempfile

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.log_helper import get_logger
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig

VOCAB = 200
logger = get_logger("fluid", 20, fmt="%(asctime)s - %(levelname)s - %(message)s")


def role_by_environment():
    """As the fleet tests: a role maker by hand where the environment names one, else from the cloud's variables."""
    if os.getenv("ROLE_BY_HAND"):
        return role_maker.UserDefinedRoleMaker(current_id=0, role=role_maker.Role.WORKER, worker_num=1,
                                               server_endpoints=["127.0.0.1:36011"])
    return role_maker.PaddleCloudRoleMaker()


def ctr_net():
    ids = fluid.layers.data(name="ids", shape=[1], dtype="int64", lod_level=1)
    dense = fluid.layers.data(name="dense", shape=[3], dtype="float32")
    label = fluid.layers.data(name="click", shape=[1], dtype="int64")
    emb = fluid.layers.embedding(input=ids, size=[VOCAB, 8], is_sparse=True, is_distributed=False,
                                 param_attr=fluid.ParamAttr(name="table"))
    pooled = fluid.layers.sequence_pool(input=emb, pool_type="average")
    hidden = fluid.layers.fc(input=[pooled, dense], size=16, act="relu")
    predict = fluid.layers.fc(input=hidden, size=2, act="softmax")
    avg_cost = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=label))
    auc, batch_auc, _ = fluid.layers.auc(input=predict, label=label)
    return [ids, dense, label], avg_cost, auc, batch_auc, predict


def fake_reader():
    rng = np.random.RandomState(2)
    for _ in range(1500):
        click = rng.randint(2)
        yield [list(rng.randint(0, VOCAB // 2, size=rng.randint(1, 4)) + click * VOCAB // 2),
               rng.rand(3).astype("float32"), click]


def main():
    fleet.init(role_by_environment())
    feeds, avg_cost, auc, batch_auc, predict = ctr_net()
    strategy = DistributeTranspilerConfig()
    strategy.sync_mode = True
    strategy.runtime_split_send_recv = False
    optimizer = fluid.optimizer.Adam(learning_rate=0.01)
    optimizer = fleet.distributed_optimizer(optimizer, strategy)
    optimizer.minimize(avg_cost)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        sys.exit(0)

    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    feeder = fluid.DataFeeder(place=fluid.CPUPlace(), feed_list=feeds)
    costs = []
    for data in paddle.batch(fake_reader, batch_size=24)():
        cost, auc_value, batch_auc_value = exe.run(fleet.main_program, feed=feeder.feed(data),
                                                   fetch_list=[avg_cost, auc, batch_auc])
        costs.append(float(cost))
    logger.info("the last batch has auc %f", batch_auc_value)
    print("first=%f last=%f auc=%f" % (costs[0], np.mean(costs[-5:]), auc_value))
    print("files_of_mine=%d" % len(fleet.split_files(["a", "b", "c"])))
    if fleet.is_first_worker():
        with tempfile.TemporaryDirectory() as folder:
            fleet.save_persistables(executor=exe, dirname=folder)
            print("table_saved=%d" % os.path.exists(os.path.join(folder, "table")))
            fleet.save_inference_model(executor=exe, dirname=os.path.join(folder, "model"),
                                       feeded_var_names=["ids", "dense"], target_vars=[predict])
    fleet.stop_worker()


if __name__ == "__main__":
    main()
