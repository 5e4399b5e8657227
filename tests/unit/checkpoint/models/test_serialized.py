"""A model as bytes: there and back, through files, and as the files that save_inference_model writes."""

import numpy as np
import pytest

from fleet_mpi import paddle
from fleet_mpi.errors import CheckpointDamaged, CheckpointMissing, UsageError

static = paddle.static


@pytest.fixture
def model():
    """(x, prediction, executor) of a network that also has a loss and an optimizer."""
    x = static.data("x", [None, 3])
    prediction = static.nn.fc(x, 2, activation="softmax")
    label = static.data("label", [None, 1], "int64")
    paddle.optimizer.Adam(0.1).minimize(paddle.mean(paddle.nn.functional.cross_entropy(prediction, label)))
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return x, prediction, exe


FEED = {"x": np.arange(6, dtype="float32").reshape(2, 3)}


def predicted(program, prediction, exe):
    return exe.run(program, feed=FEED, fetch_list=[prediction.name])[0]


def test_a_program_comes_back_with_what_leads_to_the_prediction_only(model):
    x, prediction, exe = model
    program = static.deserialize_program(static.serialize_program([x], [prediction]))
    assert [op.type for op in program.global_block().ops] == ["mul", "elementwise_add", "softmax"]
    assert (predicted(program, prediction, exe) == predicted(static.default_main_program().clone(for_test=True)
            ._prune([prediction]), prediction, exe)).all()


def test_values_come_back_into_another_scope(model):
    x, prediction, exe = model
    program = static.deserialize_program(static.serialize_program([x], [prediction]))
    before, data = predicted(program, prediction, exe), static.serialize_persistables(x, prediction, exe)
    with static.scope_guard(static.Scope()):
        static.deserialize_persistables(program, data, exe)
        assert (predicted(program, prediction, exe) == before).all()
        assert len(paddle.static.global_scope().local_var_names()) >= 2


def test_bytes_in_files_are_what_save_inference_model_writes(model, tmp_path):
    x, prediction, exe = model
    static.save_inference_model(str(tmp_path / "by_it"), [x], [prediction], exe)
    for ending, data in ((".pdmodel", static.serialize_program([x], [prediction])),
                         (".pdiparams", static.serialize_persistables([x], [prediction], exe))):
        assert static.load_from_file(str(tmp_path / "by_it") + ending) == data
        static.save_to_file(str(tmp_path / "by_hand") + ending, data)
    before = predicted(static.deserialize_program(static.serialize_program([x], [prediction])), prediction, exe)
    with static.scope_guard(static.Scope()):
        program, feeds, fetches = static.load_inference_model(str(tmp_path / "by_hand"), exe)
        assert feeds == ["x"] and (exe.run(program, feed=FEED, fetch_list=fetches)[0] == before).all()


def test_a_normalized_program_says_what_is_fed_and_fetched(model):
    x, prediction, exe = model
    program = static.normalize_program(static.default_main_program(), [x], [prediction])
    assert [op.type for op in program.global_block().ops] == ["feed", "mul", "elementwise_add", "softmax", "fetch"]
    assert predicted(program, prediction, exe).shape == (2, 2)


def test_a_model_without_variables_has_no_bytes(capfd):
    x = static.data("x", [None, 3])
    assert static.serialize_persistables([x], [paddle.mean(x)], None) is None
    assert "no variables to save" in capfd.readouterr().err


def test_what_does_not_fit_is_refused(model, tmp_path):
    x, prediction, exe = model
    data = static.serialize_persistables([x], [prediction], exe)
    for wrong in (lambda: static.normalize_program("program", [x], [prediction]),
                  lambda: static.serialize_program(["x"], [prediction]), lambda: static.save_to_file("file", "text"),
                  lambda: static.deserialize_program("text")):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(UsageError, match="depend on .*'x'"):
        static.serialize_program([static.default_main_program().global_block().var("label")], [prediction])
    with pytest.raises(CheckpointDamaged, match="hold 2 variables, the program has"):
        static.deserialize_persistables(static.default_main_program(), data, exe)
    with pytest.raises(CheckpointMissing):
        static.load_from_file(str(tmp_path / "nothing"))
