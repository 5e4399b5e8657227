"""ParallelExecutor and CompiledProgram with their strategies, in the manner of the parallel_executor tests."""

import os

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.compiler as compiler

os.environ["CPU_NUM"] = "1"


def network():
    img = fluid.layers.data(name="image", shape=[784], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    hidden = img
    for _ in range(2):
        hidden = fluid.layers.fc(hidden, size=24, act="tanh",
                                 bias_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(value=1.0)))
    prediction = fluid.layers.fc(hidden, size=10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))
    return img, label, prediction, loss


def strategies():
    exec_strategy = fluid.ExecutionStrategy()
    exec_strategy.num_threads = 4
    exec_strategy.num_iteration_per_drop_scope = 30
    exec_strategy.use_experimental_executor = True
    build_strategy = fluid.BuildStrategy()
    build_strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    build_strategy.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.CoeffNumDevice
    build_strategy.memory_optimize = True
    build_strategy.enable_inplace = True
    build_strategy.fuse_all_reduce_ops = True
    build_strategy.fuse_elewise_add_act_ops = True
    build_strategy.num_trainers = 1
    build_strategy.trainer_id = 0
    return exec_strategy, build_strategy


def main():
    main_program, startup = fluid.Program(), fluid.Program()
    main_program.random_seed = startup.random_seed = 3
    with fluid.program_guard(main_program, startup):
        img, label, prediction, loss = network()
        test_program = main_program.clone(for_test=True)
        fluid.optimizer.Adam(learning_rate=0.003).minimize(loss)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup)
    exec_strategy, build_strategy = strategies()
    data = list(paddle.batch(paddle.reader.firstn(paddle.dataset.mnist.train(), 2000), batch_size=40)())
    feeder = fluid.DataFeeder([img, label], place, program=main_program)

    pe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name, main_program=main_program,
                                exec_strategy=exec_strategy, build_strategy=build_strategy)
    test_pe = fluid.ParallelExecutor(use_cuda=False, main_program=test_program, share_vars_from=pe)
    print("devices=%d" % pe.device_count)
    losses = [float(np.mean(pe.run(feed=feeder.feed(batch), fetch_list=[loss.name])[0])) for batch in data[:25]]
    print("pe_first=%f pe_last=%f" % (losses[0], losses[-1]))
    shared, = test_pe.run([loss.name], feed=feeder.feed(data[0]))
    alone, = exe.run(test_program, feed=feeder.feed(data[0]), fetch_list=[loss])
    assert np.mean(shared) == alone[0], (shared, alone)

    compiled = compiler.CompiledProgram(main_program).with_data_parallel(
        loss_name=loss.name, build_strategy=build_strategy, exec_strategy=exec_strategy)
    for batch in data[25:]:
        value, scores = exe.run(compiled, feed=feeder.feed(batch), fetch_list=[loss.name, prediction],
                                return_numpy=False)
    print("compiled_last=%f" % np.array(value)[0])
    print("scores0=%d scores1=%d" % np.array(scores).shape)
    again = exe.run(fluid.CompiledProgram(test_program), feed=[feeder.feed(data[0])], fetch_list=[loss.name])
    print("after=%f before=%f" % (again[0], alone))
    parted = list(feeder.feed_parallel([data[0][:20], data[0][20:]], num_places=2))
    assert len(parted) == 2 and np.array(parted[0]["image"]).shape == (20, 784)


if __name__ == "__main__":
    main()
