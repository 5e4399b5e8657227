"""Servers take up what was saved before they serve, as the original's distributed tests do: LOAD=1 MODEL_DIR=folder."""

import os
import tempfile

import numpy as np
import paddle.fluid as fluid

role = os.getenv("PADDLE_TRAINING_ROLE", "TRAINER")
endpoints = os.getenv("PADDLE_PSERVER_ENDPOINTS", "127.0.0.1:6174")
trainers = int(os.getenv("PADDLE_TRAINERS", "1"))
trainer_id = int(os.getenv("PADDLE_TRAINER_ID", "0"))
model_dir = os.getenv("MODEL_DIR") or tempfile.mkdtemp()
need_load = bool(int(os.getenv("LOAD", "0")))
first, last = (int(step) for step in os.getenv("STEPS", "0,6").split(","))

x = fluid.layers.data(name="x", shape=[20], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
hidden = fluid.layers.dropout(fluid.layers.batch_norm(fluid.layers.fc(x, size=1000, act="relu")), 0.2)
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, size=1), y))
fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 1
fluid.optimizer.Adam(learning_rate=fluid.layers.exponential_decay(0.01, 2, 0.9)).minimize(loss)
t = fluid.DistributeTranspiler()
t.transpile(trainer_id=trainer_id, pservers=endpoints, trainers=trainers, sync_mode=True)
exe = fluid.Executor(fluid.CPUPlace())

if role == "PSERVER":
    current = os.getenv("PADDLE_CURRENT_ENDPOINT")
    pserver_prog = t.get_pserver_program(current)
    exe.run(t.get_startup_program(current, pserver_prog))
    if need_load:
        fluid.io.load_persistables(exe, model_dir, pserver_prog)
    exe.run(pserver_prog)
    print("served")
else:
    trainer_prog = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    costs = []
    for step in range(first, last):
        rng = np.random.RandomState(2 * step + trainer_id)
        data = rng.uniform(-1, 1, (8, 20)).astype("float32")
        cost, = exe.run(trainer_prog, feed={"x": data, "y": data.sum(1, keepdims=True)}, fetch_list=[loss.name])
        costs.append(float(cost[0]))
    fluid.io.save_persistables(exe, os.getenv("SAVE_DIR", model_dir), trainer_prog)
    print("first=%f last=%f saved=%d" % (costs[0], costs[-1], len(os.listdir(os.getenv("SAVE_DIR", model_dir)))))
    exe.close()
