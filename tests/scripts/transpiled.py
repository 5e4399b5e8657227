"""Digits through the transpiler, roles from the environment, in the manner of the book's distributed tests."""

import os

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid.transpiler.details import program_to_code


def mlp():
    images = fluid.layers.data(name="pixel", shape=[784], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    hidden = fluid.layers.fc(input=images, size=32, act="relu", param_attr=fluid.ParamAttr(name="hidden_w"))
    predict = fluid.layers.fc(input=hidden, size=10, act="softmax")
    return [images, label], fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=label))


def train_loop(main_program, feeds, avg_cost):
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=feeds, place=place)
    reader = paddle.batch(paddle.reader.firstn(paddle.dataset.mnist.train(), 2000), batch_size=40)
    costs = [float(exe.run(main_program, feed=feeder.feed(data), fetch_list=[avg_cost])[0]) for data in reader()]
    print("first=%f last=%f" % (costs[0], np.mean(costs[-5:])))


def main():
    feeds, avg_cost = mlp()
    fluid.optimizer.SGD(learning_rate=0.1).minimize(avg_cost)
    port = os.getenv("PADDLE_PSERVER_PORT", "6174")
    endpoints = ",".join("%s:%s" % (ip, port) for ip in os.getenv("PADDLE_PSERVER_IPS", "127.0.0.1").split(","))
    trainers = int(os.getenv("PADDLE_TRAINERS", "1"))
    trainer_id = int(os.getenv("PADDLE_TRAINER_ID", "0"))
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = True
    t = fluid.DistributeTranspiler(config=config)
    t.transpile(trainer_id, pservers=endpoints, trainers=trainers, sync_mode=True)
    if os.getenv("PADDLE_TRAINING_ROLE", "TRAINER") == "PSERVER":
        pserver_prog = t.get_pserver_program(endpoints)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(t.get_startup_program(endpoints, pserver_prog))
        exe.run(pserver_prog)
        return
    trainer_prog = t.get_trainer_program()
    with open(os.devnull, "w") as fout:
        program_to_code(trainer_prog, fout=fout)
    train_loop(trainer_prog, feeds, avg_cost)


if __name__ == "__main__":
    main()
