"""Every worker saves into a temporary folder of its own, reads the model back and predicts with it, and all into one
folder."""

import os
import shutil
import sys
import tempfile

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker

if "collective" in sys.argv:
    from paddle.fluid.incubate.fleet.collective import fleet
    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
else:
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
    fleet.init(role_maker.MPISymetricRoleMaker())


def net():
    words = fluid.layers.data(name="words", shape=[1], dtype="int64")
    dense = fluid.layers.data(name="dense", shape=[4], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="float32")
    emb = fluid.layers.embedding(words, size=[1000, 8], is_sparse="collective" not in sys.argv)
    hidden = fluid.layers.batch_norm(fluid.layers.fc(fluid.layers.concat([emb, dense], axis=1), size=16, act="relu"))
    predict = fluid.layers.fc(hidden, size=1)
    return predict, fluid.layers.mean(fluid.layers.square_error_cost(predict, label))


def batch(seed):
    rng = np.random.RandomState(seed)
    dense = rng.uniform(-1, 1, (16, 4)).astype("float32")
    return {"words": rng.randint(0, 1000, (16, 1)).astype("int64"), "dense": dense,
            "label": dense.sum(1, keepdims=True)}


fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 1
predict, avg_cost = net()
test_program = fluid.default_main_program().clone(for_test=True)
strategy = fluid.DistributeTranspilerConfig() if "collective" not in sys.argv else None
if "async" in sys.argv:
    strategy.sync_mode, strategy.runtime_split_send_recv = False, True
fleet.distributed_optimizer(fluid.optimizer.Adam(learning_rate=0.01), strategy).minimize(avg_cost)
exe = fluid.Executor(fluid.CPUPlace())
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
fleet.init_worker()
exe.run(fleet.startup_program)
mine, together = tempfile.mkdtemp(), sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
differences = []
for epoch in range(3):
    for step in range(5):
        exe.run(fleet.main_program, feed=batch(100 * epoch + 10 * step + fleet.worker_index()))
    model = os.path.join(mine, "epoch_%d" % epoch)
    fleet.save_inference_model(exe, model, ["words", "dense"], [predict])
    fleet.save_persistables(exe, os.path.join(together, "epoch_%d" % epoch))
    fluid.io.save_params(exe, os.path.join(mine, "params"), fleet.main_program)
    # Read back what was saved, in a scope of its own, and in the one that trains.
    data = {name: value for name, value in batch(7).items() if name != "label"}
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, targets = fluid.io.load_inference_model(model, exe)
        once, = exe.run(program, feed=data, fetch_list=targets)
    program, feeds, targets = fluid.io.load_inference_model(model, exe)
    again, = exe.run(program, feed=data, fetch_list=targets)
    differences.append(float(np.abs(once - again).max()))
print("worker=%d models=%d params=%d difference=%g" % (
    fleet.worker_index(), len(os.listdir(mine)) - 1, len([name for name in os.listdir(os.path.join(mine, "params"))
                                                          if not name.startswith(".")]), max(differences)))
shutil.rmtree(mine)
fleet.stop_worker()
