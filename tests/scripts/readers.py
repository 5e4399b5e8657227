"""Every way to bring data into a program that the distributed scripts use, one after the other."""

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as layers

PLACE = fluid.CPUPlace()


def samples():
    for i in range(40):
        yield np.full(4, i % 5, dtype="float32"), i % 5


def arrays():
    for i in range(3):
        yield np.full((2, 4), i, dtype="float32"), np.ones((2, 1), dtype="int64")


def decorated():
    doubled = paddle.reader.xmap_readers(lambda sample: (sample[0] * 2, sample[1]), samples, 2, 10, order=True)
    chained = paddle.reader.cache(paddle.reader.chain(paddle.reader.buffered(doubled, 8), samples))
    print("chained=%d composed=%d" % (len(list(chained())), len(next(paddle.reader.compose(samples, samples)()))))
    both = paddle.reader.multiprocess_reader([samples, samples])
    print("multiprocess=%d" % len(list(both())))


def until_the_end(run, reader):
    """Results of all steps of one pass of a started reader."""
    results = []
    reader.start()
    try:
        while True:
            results.append(run())
    except fluid.core.EOFException:
        reader.reset()
    return results


def reader_of_the_program():
    image = layers.data(name="image", shape=[4], dtype="float32")
    label = layers.data(name="label", shape=[1], dtype="int64")
    reader = layers.create_py_reader_by_data(capacity=8, feed_list=[image, label], name="by_data",
                                             use_double_buffer=True)
    image, label = layers.read_file(reader)
    loss = layers.mean(layers.cross_entropy(layers.fc(image, 5, act="softmax"), label))
    fluid.optimizer.Adam(0.1).minimize(loss)
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    parallel = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name)
    reader.decorate_paddle_reader(paddle.batch(samples, batch_size=10))
    passes = [until_the_end(lambda: float(np.mean(parallel.run(fetch_list=[loss.name])[0])), reader)
              for _ in range(8)]
    print("steps=%d first=%f last=%f" % (len(passes[0]), passes[0][0], passes[-1][-1]))


def provided_and_fed(exe):
    main_program = fluid.Program()
    with fluid.program_guard(main_program, fluid.Program()):
        reader = layers.py_reader(capacity=4, shapes=[(-1, 4), (-1, 1)], dtypes=["float32", "int64"], name="provided")
        total = layers.reduce_sum(layers.read_file(reader)[0])
    reader.decorate_tensor_provider(arrays)
    sums = until_the_end(lambda: float(exe.run(main_program, fetch_list=[total])[0]), reader)
    print("provided=%d" % sum(sums))

    main_program = fluid.Program()
    with fluid.program_guard(main_program, fluid.Program()):
        feeds = [layers.data(name="q", shape=[4], dtype="float32"), layers.data(name="z", shape=[1], dtype="int64")]
        total = layers.reduce_sum(feeds[0])
    py_reader = fluid.io.PyReader(feed_list=feeds, capacity=4, iterable=True)
    py_reader.decorate_sample_list_generator(paddle.batch(samples, batch_size=20), places=PLACE)
    print("listed=%d" % sum(float(exe.run(main_program, feed=feed, fetch_list=[total])[0]) for feed in py_reader()))
    loader = fluid.io.DataLoader.from_generator(feed_list=feeds, capacity=4)
    loader.set_batch_generator(arrays, places=fluid.cpu_places(1))
    print("generated=%d" % sum(float(exe.run(main_program, feed=feed, fetch_list=[total])[0]) for feed in loader()))
    loader = fluid.io.DataLoader.from_generator(feed_list=feeds, capacity=4, return_list=True, use_multiprocess=True)
    loader.set_sample_generator(samples, batch_size=7, drop_last=True, places=PLACE)
    print("whole_batches=%d" % sum(1 for image, label in loader() if np.array(image).shape == (7, 4)))


def broken(exe):
    """An error in the generator reaches the training loop."""
    def bad():
        yield [(np.ones(4, dtype="float32"), 1)]
        raise ValueError("broken sample")

    loader = fluid.io.DataLoader.from_generator(feed_list=[layers.data(name="b", shape=[4], dtype="float32"),
                                                           layers.data(name="c", shape=[1], dtype="int64")], capacity=2)
    loader.set_sample_list_generator(bad, places=PLACE)
    try:
        for _ in loader():
            pass
    except ValueError as error:
        print("error reached the loop: %s" % error)
        print("reached=1")


def main():
    decorated()
    reader_of_the_program()
    exe = fluid.Executor(PLACE)
    provided_and_fed(exe)
    broken(exe)


if __name__ == "__main__":
    main()
