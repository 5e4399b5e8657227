"""Learning rates put together from ops, as the image and language scripts do: warm-up first, decay after."""

import math

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers
from paddle.fluid.layers import tensor
from paddle.fluid.layers.control_flow import Switch
from paddle.fluid.layers.learning_rate_scheduler import _decay_step_counter, polynomial_decay

STEPS = 12


def cosine_decay_with_warmup(learning_rate, step_each_epoch, warmup_epoch, epochs):
    global_step = _decay_step_counter()
    lr = tensor.create_global_var(shape=[1], value=0.0, dtype="float32", persistable=True, name="learning_rate")
    warmup = layers.fill_constant(shape=[1], dtype="float32", value=float(warmup_epoch), force_cpu=True)
    with fluid.default_main_program()._lr_schedule_guard():
        epoch = layers.ops.floor(global_step / step_each_epoch)
        with Switch() as switch:
            with switch.case(epoch < warmup):
                tensor.assign(input=learning_rate * (global_step / (step_each_epoch * warmup_epoch)), output=lr)
            with switch.default():
                progress = (global_step - warmup_epoch * step_each_epoch) / (epochs * step_each_epoch)
                tensor.assign(input=learning_rate * (layers.ops.cos(progress * math.pi) + 1) / 2, output=lr)
    return lr


def linear_warmup_decay(learning_rate, warmup_steps, num_train_steps):
    with fluid.default_main_program()._lr_schedule_guard():
        lr = layers.create_global_var(shape=[1], value=0.0, dtype="float32", persistable=True,
                                      name="scheduled_learning_rate")
        global_step = _decay_step_counter()
        with Switch() as switch:
            with switch.case(global_step < warmup_steps):
                layers.assign(learning_rate * (global_step / warmup_steps), lr)
            with switch.default():
                layers.assign(polynomial_decay(learning_rate=learning_rate, decay_steps=num_train_steps,
                                               end_learning_rate=0.0, power=1.0, cycle=False), lr)
    return lr


def rates(schedule):
    """What the schedule gives in the first steps of a training."""
    main_program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main_program, startup), fluid.unique_name.guard():
        x = layers.data(name="x", shape=[3], dtype="float32")
        loss = layers.mean(layers.square(layers.fc(x, size=1)))
        lr = schedule()
        optimizer = fluid.optimizer.Momentum(lr, 0.9)
        optimizer.minimize(loss)
        assert optimizer._global_learning_rate() is lr
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        ones = np.ones((2, 3), dtype="float32")
        return [float(exe.run(main_program, feed={"x": ones}, fetch_list=[lr])[0]) for _ in range(STEPS)]


def main():
    found = rates(lambda: cosine_decay_with_warmup(0.1, step_each_epoch=2, warmup_epoch=2, epochs=6))
    wanted = [0.1 * step / 4 if step < 4 else 0.05 * (1 + math.cos(math.pi * (step - 4) / 12)) for step in range(STEPS)]
    print("cosine=%g" % np.abs(np.subtract(found, wanted)).max())
    found = rates(lambda: linear_warmup_decay(0.1, warmup_steps=4, num_train_steps=12))
    wanted = [0.1 * step / 4 if step < 4 else 0.1 * (1 - step / 12) for step in range(STEPS)]
    print("linear=%g" % np.abs(np.subtract(found, wanted)).max())
    found = rates(lambda: layers.linear_lr_warmup(layers.exponential_decay(0.1, 2, 0.5, staircase=True), 4, 0.0, 0.1))
    wanted = [0.1 * step / 4 if step < 4 else 0.1 * 0.5 ** (step // 2) for step in range(STEPS)]
    print("warmup=%g" % np.abs(np.subtract(found, wanted)).max())


if __name__ == "__main__":
    main()
