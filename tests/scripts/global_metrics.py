"""A click model whose metrics are those of the whole job: FleetUtil and fleet.metrics over what layers.auc counts."""

import sys

import numpy as np
import paddle.distributed.fleet.metrics.metric as metric
import paddle.fluid as fluid
from paddle.distributed.fleet.base.util_factory import UtilFactory
from paddle.fluid.incubate.fleet.base.role_maker import MPISymetricRoleMaker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory
from paddle.fluid.incubate.fleet.utils.fleet_util import FleetUtil

role = MPISymetricRoleMaker()
fleet.init(role)
ids = fluid.layers.data(name="ids", shape=[1], dtype="int64", lod_level=1)
label = fluid.layers.data(name="click", shape=[1], dtype="int64")
pooled = fluid.layers.sequence_pool(fluid.layers.embedding(ids, [50, 8], is_sparse=True), "sum")
predict = fluid.layers.fc(pooled, 2, act="softmax")
loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, label))
auc, batch_auc, states = fluid.layers.auc(input=predict, label=label, num_thresholds=2 ** 10)
fleet.distributed_optimizer(fluid.optimizer.Adam(0.05), StrategyFactory.create_sync_strategy()).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit()
exe, rng = fluid.Executor(fluid.CPUPlace()), np.random.RandomState(1)
fleet.init_worker()
exe.run(fleet.startup_program)
scope, util = fluid.global_scope(), FleetUtil(mode="transpiler")
sums = dict.fromkeys(("sqrerr", "abserr", "prob", "q", "pos", "total"), 0.0)
for step in range(60):
    if step == 40:  # what was counted while it still learned does not count
        for state in states[2:]:
            util.set_zero(state.name, scope)
    words = rng.randint(0, 50, (64, 3))
    clicks = (words.sum(1, keepdims=True) > 73).astype("int64")
    given = fluid.create_lod_tensor(words.reshape(-1, 1), [[3] * 64], fluid.CPUPlace())
    scores, local = exe.run(fleet.main_program, feed={"ids": given, "click": clicks}, fetch_list=[predict, auc])
    if step >= 40:
        error = scores[:, 1:] - clicks
        for name, value in (("sqrerr", (error ** 2).sum()), ("abserr", np.abs(error).sum()),
                            ("prob", scores[:, 1].sum()),
                            ("pos", clicks.sum()), ("total", len(clicks))):
            sums[name] += float(value)
for name, value in sums.items():
    scope.var(name).get_tensor().set(np.array([value]), fluid.CPUPlace())
stat_pos, stat_neg = (state.name for state in states[2:])
util.print_global_auc(scope, stat_pos, stat_neg, "after training")
found = util.get_global_metrics(scope, stat_pos, stat_neg)
together = UtilFactory()._create_util({"role_maker": role})
print("auc=%f same=%d local=%f bucket=%f mae=%f rmse=%f copc=%f total=%d rmse2=%f workers=%d" % (
    found[0], found[0] == metric.auc(stat_pos, stat_neg, scope, together), float(local[0]), found[1], found[2],
    found[3],
    found[6], found[8], metric.rmse("sqrerr", "total", scope, together), fleet.worker_num()))
fleet.stop_worker()
