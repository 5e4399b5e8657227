"""House prices with a py_reader; parameters saved, loaded back, and used for inference in another scope."""

import os
import shutil
import tempfile

import numpy as np
import paddle
import paddle.fluid as fluid

BATCH_SIZE = 20


def network(is_test=False):
    py_reader = fluid.layers.py_reader(capacity=16, shapes=[[-1, 13], [-1, 1]], dtypes=["float32", "float32"],
                                       lod_levels=[0, 0], name="test_reader" if is_test else "train_reader",
                                       use_double_buffer=True)
    x, y = fluid.layers.read_file(py_reader)
    y_predict = fluid.layers.fc(input=x, size=1, act=None, param_attr=fluid.ParamAttr(name="w"),
                                bias_attr=fluid.ParamAttr(name="b"))
    cost = fluid.layers.square_error_cost(input=y_predict, label=y)
    return py_reader, x, y_predict, fluid.layers.mean(cost)


def run_pass(exe, program, py_reader, avg_cost):
    """One pass until the reader's end; the mean cost."""
    costs = []
    py_reader.start()
    try:
        while True:
            cost, = exe.run(program, fetch_list=[avg_cost.name])
            costs.append(cost)
    except fluid.core.EOFException:
        py_reader.reset()
    return len(costs), float(np.mean(costs))


def main():
    train_program, startup, test_program = fluid.Program(), fluid.Program(), fluid.Program()
    startup.random_seed = 5
    with fluid.program_guard(train_program, startup):
        with fluid.unique_name.guard():
            train_py_reader, x, y_predict, avg_cost = network()
            fluid.optimizer.SGD(learning_rate=0.01).minimize(avg_cost)
    with fluid.program_guard(test_program, fluid.Program()):
        with fluid.unique_name.guard():
            test_py_reader, test_x, test_predict, test_cost = network(is_test=True)
    test_program = test_program.clone(for_test=True)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    train_py_reader.decorate_paddle_reader(paddle.batch(
        paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500), batch_size=BATCH_SIZE))
    test_py_reader.decorate_paddle_reader(paddle.batch(paddle.dataset.uci_housing.test(), batch_size=BATCH_SIZE))
    for pass_id in range(12):
        steps, cost = run_pass(exe, train_program, train_py_reader, avg_cost)
        if pass_id == 0:
            print("steps=%d first=%f" % (steps, cost))
    tests, test_mean = run_pass(exe, test_program, test_py_reader, test_cost)
    print("last=%f test=%f test_steps=%d" % (cost, test_mean, tests))

    folder = tempfile.mkdtemp()
    try:
        saved_and_loaded(exe, folder, train_program, test_program, test_py_reader, test_x, test_predict, test_cost,
                         test_mean)
    finally:
        shutil.rmtree(folder)


def saved_and_loaded(exe, folder, train_program, test_program, test_py_reader, x, predict, test_cost, test_mean):
    params, together = os.path.join(folder, "params"), os.path.join(folder, "together")
    fluid.io.save_persistables(exe, params, train_program)
    fluid.io.save_persistables(executor=exe, dirname=together, main_program=train_program, filename="all")
    print("files=%s" % ",".join(sorted(name for name in os.listdir(params) if name in "wb")))
    weight = np.array(fluid.global_scope().find_var("w").get_tensor())

    # What was loaded counts, not what was there before.
    for dirname, filename in ((params, None), (together, "all")):
        tensor = fluid.global_scope().find_var("w").get_tensor()
        tensor.set(np.zeros_like(weight), fluid.CPUPlace())
        _, spoilt = run_pass(exe, test_program, test_py_reader, test_cost)
        fluid.io.load_persistables(exe, dirname, main_program=train_program, filename=filename)
        _, again = run_pass(exe, test_program, test_py_reader, test_cost)
        assert spoilt != test_mean and again == test_mean, (spoilt, again, test_mean)

    sample = np.array([features for features, _ in list(paddle.dataset.uci_housing.test()())[:10]], dtype="float32")
    model = os.path.join(folder, "model")
    fluid.io.save_inference_model(model, [x.name], [predict], exe, main_program=test_program)
    with fluid.scope_guard(fluid.core.Scope()):
        infer_exe = fluid.Executor(fluid.CPUPlace())
        program, feed_names, targets = fluid.io.load_inference_model(model, infer_exe)
        assert feed_names == [x.name], feed_names
        prices, = infer_exe.run(program, feed={feed_names[0]: sample}, fetch_list=targets)
        held = np.array(fluid.global_scope().find_var("w").get_tensor())
        assert (held == weight).all()
    bias = np.array(fluid.global_scope().find_var("b").get_tensor())
    print("difference=%g rows=%d" % (np.abs(prices - (sample @ weight + bias)).max(), len(prices)))


if __name__ == "__main__":
    main()
