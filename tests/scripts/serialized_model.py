"""A 2.x static model as bytes: sent somewhere, kept in files of one's own, read back and run."""

import os
import tempfile

import numpy as np
import paddle

paddle.enable_static()
paddle.seed(5)

image = paddle.static.data(name="img", shape=[None, 8], dtype="float32")
label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
predict = paddle.static.nn.fc(image, 3, activation="softmax")
loss = paddle.mean(paddle.nn.functional.cross_entropy(predict, label, use_softmax=False))
paddle.optimizer.Adam(learning_rate=0.05).minimize(loss)

exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
rng = np.random.RandomState(0)
centres = rng.randn(3, 8) * 3
costs = []
for step in range(150):
    classes = rng.randint(3, size=(32, 1)).astype("int64")
    batch = (centres[classes[:, 0]] + rng.randn(32, 8)).astype("float32")
    costs.append(exe.run(feed={"img": batch, "label": classes}, fetch_list=[loss])[0].item())
print("first=%f last=%f" % (costs[0], np.mean(costs[-10:])))

program_bytes = paddle.static.serialize_program([image], [predict])
params_bytes = paddle.static.serialize_persistables([image], [predict], exe)
normalized = paddle.static.normalize_program(paddle.static.default_main_program(), [image], [predict])
expected = exe.run(normalized, feed={"img": batch}, fetch_list=[predict])[0]

with tempfile.TemporaryDirectory() as folder:
    prefix = os.path.join(folder, "model")
    paddle.static.save_to_file(prefix + ".pdmodel", program_bytes)
    paddle.static.save_to_file(prefix + ".pdiparams", params_bytes)
    with paddle.static.scope_guard(paddle.static.Scope()):
        program = paddle.static.deserialize_program(paddle.static.load_from_file(prefix + ".pdmodel"))
        paddle.static.deserialize_persistables(program, paddle.static.load_from_file(prefix + ".pdiparams"), exe)
        again = exe.run(program, feed={"img": batch}, fetch_list=[predict.name])[0]
    with paddle.static.scope_guard(paddle.static.Scope()):
        loaded, feeds, fetches = paddle.static.load_inference_model(prefix, exe)
        third = exe.run(loaded, feed={feeds[0]: batch}, fetch_list=fetches)[0]

ops = [op.type for op in normalized.global_block().ops]
print("same=%d loaded=%d feeds=%d fetches=%d" % ((again == expected).all(), (third == expected).all(),
                                                 ops.count("feed"),
                                                 ops.count("fetch")))
