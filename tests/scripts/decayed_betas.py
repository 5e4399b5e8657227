"""Adam whose betas fall with the step, at a rate that warms up by hand before a decay of the library."""

import numpy as np
import paddle.fluid as fluid


def get_decayed_betas(beta1_init, beta2_init, decay_steps, decay_rate):
    global_step = fluid.layers.cast(fluid.layers.autoincreased_step_counter(begin=0), "float32")
    betas = []
    for name, first in (("beta1", beta1_init), ("beta2", beta2_init)):
        beta = fluid.layers.create_global_var(shape=[1], value=float(first), dtype="float32", persistable=True,
                                              name=name)
        fluid.layers.assign(first * (decay_rate ** (global_step / decay_steps)), beta)
        betas.append(beta)
    return betas


def warmup_then_decay(learning_rate, warmup_steps, train_steps):
    with fluid.default_main_program()._lr_schedule_guard():
        lr = fluid.layers.create_global_var(shape=[1], value=0.0, dtype="float32", persistable=True, name="scheduled")
        step = fluid.layers.learning_rate_scheduler._decay_step_counter()
        with fluid.layers.control_flow.Switch() as switch:
            with switch.case(step < warmup_steps):
                fluid.layers.assign(learning_rate * (step / warmup_steps), lr)
            with switch.default():
                decayed = fluid.layers.polynomial_decay(learning_rate, train_steps, end_learning_rate=0.0, power=1.0)
                fluid.layers.assign(decayed, lr)
        return lr


x = fluid.layers.data(name="x", shape=[13], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
avg_cost = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(input=x, size=1), y))
beta1, beta2 = get_decayed_betas(0.9, 0.99, 50, 0.9)
rate = warmup_then_decay(0.1, 10, 100)
fluid.optimizer.AdamOptimizer(learning_rate=rate, beta1=beta1, beta2=beta2).minimize(avg_cost)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
rng, seen = np.random.RandomState(0), []
weights = rng.rand(13, 1).astype("float32")
for _ in range(100):
    data = rng.rand(32, 13).astype("float32")
    seen.append([float(one[0]) for one in exe.run(feed={"x": data, "y": data.dot(weights)},
                                                  fetch_list=[avg_cost, rate, beta1, beta2])])
print("first=%f last=%f" % (seen[0][0], seen[-1][0]))
print("rate0=%f rate5=%f rate10=%f rate50=%f" % tuple(seen[step][1] for step in (0, 5, 10, 50)))
print("beta1_start=%f beta1_50=%f beta2_50=%f" % (seen[0][2], seen[50][2], seen[50][3]))
flags = fluid.get_flags(["FLAGS_eager_delete_tensor_gb", "FLAGS_cudnn_deterministic"])
print("flags=%d" % len(flags))
