"""Digits with the collective fleet of 1.x, in the manner of dist_mnist with fleet: one process is one worker."""

import os
import tempfile

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.collective import DistributedStrategy, fleet


def model():
    images = fluid.layers.data(name="pixel", shape=[784], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    hidden = fluid.layers.fc(input=images, size=32, act="relu")
    predict = fluid.layers.fc(input=hidden, size=10, act="softmax")
    avg_cost = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=label))
    acc = fluid.layers.accuracy(input=predict, label=label)
    return [images, label], avg_cost, acc, predict


def main():
    fluid.default_startup_program().random_seed = 1
    feeds, avg_cost, acc, predict = model()
    test_program = fluid.default_main_program().clone(for_test=True)

    role = role_maker.PaddleCloudRoleMaker(is_collective=True)
    fleet.init(role)
    dist_strategy = DistributedStrategy()
    dist_strategy.exec_strategy = fluid.ExecutionStrategy()
    dist_strategy.exec_strategy.num_threads = 1
    dist_strategy.nccl_comm_num = 1
    dist_strategy.fuse_all_reduce_ops = True
    dist_strategy.use_local_sgd = False
    dist_strategy.enable_sequential_execution = True
    optimizer = fluid.optimizer.Momentum(learning_rate=0.02, momentum=0.9)
    optimizer = fleet.distributed_optimizer(optimizer, strategy=dist_strategy)
    _, params_grads = optimizer.minimize(avg_cost, fluid.default_startup_program())
    print("worker=%d of=%d parameters=%d" % (fleet.worker_index(), fleet.worker_num(), len(params_grads)))
    print("endpoints: %s" % fleet.worker_endpoints(to_string=True))

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fleet.startup_program)
    feeder = fluid.DataFeeder(feeds, place)
    reader = paddle.batch(paddle.reader.firstn(paddle.dataset.mnist.train(), 3000), batch_size=50)
    costs = []
    for _ in range(2):
        for data in reader():
            cost, = exe.run(fleet.main_program, feed=feeder.feed(data), fetch_list=[avg_cost.name])
            costs.append(np.mean(cost))
    print("first=%f last=%f" % (costs[0], np.mean(costs[-5:])))
    origin = fluid.Program.parse_from_string(fleet._origin_program.desc.serialize_to_string())
    print("ops_of_origin=%d" % len(origin.global_block().ops))

    data = list(paddle.batch(paddle.dataset.mnist.test(), batch_size=500)())[0]
    tested, = exe.run(test_program, feed=feeder.feed(data), fetch_list=[acc])
    print("test_accuracy=%f" % tested)
    if fleet.is_first_worker():
        with tempfile.TemporaryDirectory() as folder:
            fleet.save_persistables(executor=exe, dirname=folder)
            fleet.save_inference_model(exe, os.path.join(folder, "model"), ["pixel"], [predict])
            print("saved: %s" % " ".join(sorted(os.listdir(folder))))
            with fluid.scope_guard(fluid.Scope()):
                program, names, targets = fluid.io.load_inference_model(os.path.join(folder, "model"), exe)
                image = np.array([sample[0] for sample in data], dtype="float32")
                guess = exe.run(program, feed={names[0]: image}, fetch_list=targets)[0].argmax(1)
        print("loaded_accuracy=%f" % (guess == [sample[1] for sample in data]).mean())


if __name__ == "__main__":
    main()
