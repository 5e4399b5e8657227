"""A word model as the book's chapters write it: trained, saved, and run again by a native predictor."""

import tempfile

import numpy as np
import paddle
import paddle.fluid as fluid

DICT_SIZE, EMBED, STEPS = 20, 8, 60


def to_infer_tensor(lod_tensor):
    infer_tensor = fluid.core.PaddleTensor()
    infer_tensor.lod = lod_tensor.lod()
    infer_tensor.data = fluid.core.PaddleBuf(np.array(lod_tensor))
    infer_tensor.shape = lod_tensor.shape()
    infer_tensor.dtype = fluid.core.PaddleDType.INT64
    return infer_tensor


def network(words):
    embedded = [fluid.layers.embedding(input=word, size=[DICT_SIZE, EMBED], dtype="float32", param_attr="shared")
                for word in words]
    hidden = fluid.layers.fc(input=fluid.layers.concat(embedded, axis=1), size=16, act="sigmoid",
                             param_attr=fluid.WeightNormParamAttr(dim=1, name="hidden"))
    return fluid.layers.fc(input=hidden, size=DICT_SIZE, act="softmax")


def train(folder, place):
    words = [fluid.layers.data(name=name, shape=[1], dtype="int64") for name in ("firstw", "secondw")]
    label = fluid.layers.data(name="nextw", shape=[1], dtype="int64")
    predict = network(words)
    cost = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=label))
    fluid.optimizer.AdagradOptimizer(learning_rate=0.5).minimize(cost)
    exe = fluid.executor.Executor(place)
    exe.run(fluid.framework.default_startup_program())
    first = np.arange(DICT_SIZE, dtype="int64").reshape(-1, 1)
    feed = {"firstw": first, "secondw": (first + 1) % DICT_SIZE, "nextw": (first + 2) % DICT_SIZE}
    losses = [exe.run(fluid.framework.default_main_program(), feed=feed, fetch_list=[cost])[0][0] for _ in range(STEPS)]
    fluid.io.save_inference_model(folder, ["firstw", "secondw"], [predict], exe)
    print("first=%f last=%f" % (losses[0], losses[-1]))


def infer(folder, place):
    exe = fluid.Executor(place)
    with fluid.scope_guard(fluid.core.Scope()):
        program, feed_names, targets = fluid.io.load_inference_model(folder, exe)
        fluid.InferenceTranspiler().transpile(program, place)
        drawn = [fluid.create_random_int_lodtensor([[1]], [1], place, low=0, high=DICT_SIZE - 1) for _ in feed_names]
        results = exe.run(program, feed=dict(zip(feed_names, drawn)), fetch_list=targets, return_numpy=False)
        config = fluid.core.NativeConfig()
        config.model_dir, config.use_gpu, config.device, config.fraction_of_gpu_memory = folder, False, 0, 0.15
        compiled = fluid.compiler.CompiledProgram(program)
        compiled._with_inference_optimize(config)
        outputs = exe.run(compiled, feed=[to_infer_tensor(one) for one in drawn])
    same = np.isclose(np.array(results[0]).ravel(), outputs[0].data.float_data(), rtol=5e-5).all()
    print("same=%d inference=%d" % (same, compiled._is_inference))


def main():
    np.random.seed(3)
    place = fluid.CUDAPlace(0) if fluid.core.is_compiled_with_cuda() else fluid.CPUPlace()
    if fluid.core.is_compiled_with_xpu():
        place = fluid.XPUPlace(0)
    with tempfile.TemporaryDirectory() as folder:
        train(folder, place)
        infer(folder, place)
    print("version=%s" % paddle.__version__[0])


if __name__ == "__main__":
    main()
