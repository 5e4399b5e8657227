"""Fine-tuning from another program's state: load_program_state, what fits set with set_program_state."""

import os
import tempfile

import numpy as np
import paddle.fluid as fluid


def network(classes):
    image = fluid.data(name="image", shape=[None, 16], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    hidden = fluid.layers.fc(image, 12, act="relu", param_attr="body.w", bias_attr="body.b")
    predict = fluid.layers.fc(hidden, classes, act="softmax", param_attr="head.w", bias_attr="head.b")
    return fluid.layers.mean(fluid.layers.cross_entropy(predict, label))


def train(exe, classes, state=None, steps=40):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = network(classes)
        fluid.optimizer.Momentum(learning_rate=0.1, momentum=0.9).minimize(loss)
    exe.run(startup)
    if state is not None:
        fluid.io.set_program_state(main, state)
    rng = np.random.RandomState(0)
    centers, losses = rng.randn(6, 16).astype("float32"), []
    for _ in range(steps):
        label = rng.randint(0, classes, (32, 1)).astype("int64")
        image = centers[label[:, 0]] + 0.1 * rng.randn(32, 16).astype("float32")
        losses.append(float(exe.run(main, feed={"image": image, "label": label}, fetch_list=[loss])[0][0]))
    return main, losses


def main():
    exe = fluid.Executor(fluid.CPUPlace())
    with tempfile.TemporaryDirectory() as folder:
        trained, losses = train(exe, 6)
        fluid.save(trained, os.path.join(folder, "model"))
        fluid.io.save_params(exe, os.path.join(folder, "params"), trained)
        state = fluid.io.load_program_state(os.path.join(folder, "model"))
        params = fluid.io.load_program_state(os.path.join(folder, "params"))
        same = all((state[name] == params[name]).all() for name in params)
    body = {name: value for name, value in params.items() if name.startswith("body")}
    with fluid.scope_guard(fluid.Scope()):
        tuned, tuned_losses = train(exe, 3, body, steps=10)
        moved = np.abs(fluid.io.get_parameter_value(tuned.global_block().var("body.w"), exe) - body["body.w"]).max()
    with fluid.scope_guard(fluid.Scope()):
        _, fresh_losses = train(exe, 3, steps=10)
    print("first=%f last=%f same=%d variables=%d parameters=%d moved=%f tuned=%f fresh=%f" % (
        losses[0], losses[-1], same, len(state), len(params), moved, np.mean(tuned_losses), np.mean(fresh_losses)))


if __name__ == "__main__":
    main()
