"""The models of the examples as ONNX: equal outputs for any batch size; what cannot be exported is named."""

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install '.[export]'")

from fleet_mpi import fluid
from fleet_mpi.errors import UsageError
from fleet_mpi.examples import fit_a_line, recognize_digits, resnet, wide_and_deep, word2vec
from fleet_mpi.export import onnx_model as exporting
from fleet_mpi.export.onnx_model import onnx_model
from fleet_mpi.export.saved_model import read_saved
from tests.unit.export.onnx_running import HAS_RUNTIME, RUNNERS, checked

ROWS = 50   # of every table
rng = np.random.default_rng(3)


def fit_a_line_model():
    x, _, prediction, _ = fit_a_line.network()
    return [x], prediction


def digits_model():
    image, _, prediction, _, _ = recognize_digits.network()
    return [image], prediction


def resnet_model():
    model = resnet.network(layers=18, image_size=32, classes=7, with_metrics=False)
    return [model.image], model.logits


def word2vec_model():
    words, prediction, _ = word2vec.network(ROWS, 8, 16)
    return words[:-1], prediction


def wide_and_deep_model():
    model = wide_and_deep.network(ROWS, with_metrics=False)
    return model.feeds[:-1], model.prediction


def bags_model():
    """Embedded ids of any number, averaged."""
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    rows = fluid.layers.embedding(words, [ROWS, 4], padding_idx=2)
    return [words], fluid.layers.fc(fluid.layers.sequence_pool(rows, "average"), 3, act="tanh")


def saved(folder, feeds, fetch):
    """Initialise and save; all numbers are random, the statistics of batch normalisation too."""
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for name in (var.name for var in fluid.default_main_program().list_vars() if var.persistable):
        tensor = fluid.global_scope().find_var(name).get_tensor()
        if tensor.array is not None and tensor.array.dtype == np.float32:
            low = 0.5 if tensor.array.ndim == 1 else -0.2   # a variance is above 0
            tensor.set(rng.uniform(low, low + 0.4, tensor.array.shape).astype("float32"))
    fluid.io.save_inference_model(str(folder), [var.name for var in feeds], [fetch], exe)
    return read_saved(str(folder))


def fed(var, batch):
    """Random data for a variable; slots of the click model have one id each, bags 0 to 3."""
    if var.lod_level:
        lengths = rng.integers(0, 4, batch).tolist() if var.name == "words" else [1] * batch
        return fluid.create_lod_tensor(rng.integers(0, ROWS, (sum(lengths), 1)), [lengths])
    shape = (batch, *var.shape[1:])
    return rng.integers(0, ROWS, shape) if var._dtype == np.int64 else rng.random(shape, "float32")


def compare(folder, model, batch, runners):
    """The model in the folder, run here and by runtimes."""
    exe = fluid.Executor()
    program, feeds, fetches = fluid.io.load_inference_model(str(folder), exe)
    feed = {name: fed(program.global_block().var(name), batch) for name in feeds}
    want, = exe.run(program, feed=feed, fetch_list=fetches)
    given = {name: np.asarray(value) for name, value in feed.items()}
    given |= {name + ".lod": np.array(value.lod()[-1]) for name, value in feed.items() if hasattr(value, "lod")}
    for runner in runners:
        got, = runner(model, {one.name: given[one.name] for one in model.graph.input})
        assert got.shape == want.shape and np.std(want) > 0
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("build", (fit_a_line_model, word2vec_model, wide_and_deep_model, bags_model))
def test_a_model_of_the_examples_gives_the_same(build, tmp_path):
    model = checked(onnx_model(saved(tmp_path, *build())))
    for batch in (2, 5):
        compare(tmp_path, model, batch, RUNNERS)


@pytest.mark.skipif(not HAS_RUNTIME, reason="onnx's own evaluator takes minutes: pip install onnxruntime")
@pytest.mark.parametrize("build", (digits_model, resnet_model))
def test_a_model_of_images_gives_the_same(build, tmp_path):
    model = checked(onnx_model(saved(tmp_path, *build())))
    for batch in (1, 3):
        compare(tmp_path, model, batch, RUNNERS[:1])


def test_inputs_have_an_open_batch_size_and_outputs_their_names(tmp_path):
    feeds, prediction = digits_model()
    model = onnx_model(saved(tmp_path, feeds, prediction))
    assert [one.name for one in model.graph.output] == [prediction.name]
    image, = model.graph.input
    assert [size.dim_param or size.dim_value for size in image.type.tensor_type.shape.dim] == ["N", 1, 28, 28]
    assert (model.ir_version, model.opset_import[0].version) == (exporting.IR_VERSION, exporting.OPSET)
    # Only what is read: no label, no learning rate.
    assert len(model.graph.initializer) == 6 + sum(one.name.startswith("constant") for one in model.graph.initializer)


def test_open_sizes_of_several_inputs_are_not_said_to_be_equal(tmp_path):
    x, y = (fluid.layers.data(name, [3]) for name in "xy")
    made = fluid.layers.matmul(x, y, transpose_y=True)
    model = checked(onnx_model(saved(tmp_path, [x, y], made)))
    sizes = [one.type.tensor_type.shape.dim[0].dim_param for one in model.graph.input]
    assert sizes == ["x_0", "y_0"]
    for runner in RUNNERS:
        got, = runner(model, {"x": np.ones((2, 3), "float32"), "y": np.ones((5, 3), "float32")})
        assert got.shape == (2, 5)


def test_what_is_fetched_may_be_fed_or_saved_or_written_twice(tmp_path):
    x = fluid.layers.data("x", [2])
    twice = fluid.layers.scale(x, 2.0)
    fluid.layers.assign(fluid.layers.relu(twice), output=twice)
    kept = fluid.layers.create_parameter([2], "float32", name="kept")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    made = fluid.layers.elementwise_add(twice, kept)
    fluid.io.save_inference_model(str(tmp_path), ["x"], [twice, made, x], exe)
    model = checked(onnx_model(read_saved(str(tmp_path))))
    feed = {"x": np.array([[-1.0, 3.0]], "float32")}
    program, _, fetches = fluid.io.load_inference_model(str(tmp_path), exe)
    want = exe.run(program, feed=feed, fetch_list=fetches)
    for runner in RUNNERS:
        for got, one in zip(runner(model, feed), want, strict=True):
            np.testing.assert_array_equal(got, one)


def test_all_ops_without_a_counterpart_are_in_one_sentence(tmp_path):
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    rows = fluid.layers.embedding(words, [ROWS, 4])
    made = fluid.layers.sequence_pool(fluid.layers.sequence_softmax(fluid.layers.fc(
        fluid.layers.sequence_conv(rows, 3), 1)), "sum")
    with pytest.raises(UsageError) as refused:
        onnx_model(saved(tmp_path, [words], made))
    assert str(refused.value) == (
        f"export: {tmp_path}: no counterpart in ONNX for the ops sequence_conv, sequence_softmax; --to safetensors and "
        f"--to npz export the variables")


def test_all_ops_that_are_used_without_a_counterpart_are_in_one_sentence(tmp_path):
    x = fluid.layers.data("x", [3, 5, 7])
    pooled = fluid.layers.adaptive_pool2d(x, [2, 2])
    made = fluid.layers.elementwise_add(pooled, fluid.layers.squeeze(fluid.layers.scale(pooled, 2.0), []))
    with pytest.raises(UsageError) as refused:
        onnx_model(saved(tmp_path, [x], made))
    assert ("for the ops pool2d (adaptive windows [2, 2] over data [5, 7], which they do not divide evenly), "
            "squeeze2 (") in str(refused.value)


def test_outputs_that_are_not_exported_are_refused_by_name_too(tmp_path):
    x = fluid.layers.data("x", [3])
    mean = fluid.layers.layer_norm(x).op.output("Mean")[0]
    mean = fluid.default_main_program().global_block().var(mean)
    with pytest.raises(UsageError, match=rf"for '{mean.name}', which the model gives \(an output of the op layer_norm"):
        onnx_model(saved(tmp_path / "one", [x], mean))
    with pytest.raises(UsageError, match=rf"for the op scale \(it reads '{mean.name}', an output that is not exported"):
        onnx_model(saved(tmp_path / "two", [x], fluid.layers.scale(mean, 2.0)))


def test_a_table_that_grows_is_refused_by_the_name_of_its_op(tmp_path):
    model = wide_and_deep.first_network()
    with pytest.raises(UsageError, match="no counterpart in ONNX for the op sparse_table_lookup; "):
        onnx_model(saved(tmp_path, model.feeds[:2], model.prediction))


def test_a_model_that_is_too_large_is_refused(tmp_path, monkeypatch):
    made = saved(tmp_path, *fit_a_line_model())
    monkeypatch.setattr(exporting, "LARGEST_BYTES", 50)
    with pytest.raises(UsageError, match="the variables have 56 bytes, an ONNX file may have 50; --to safetensors"):
        onnx_model(made)
