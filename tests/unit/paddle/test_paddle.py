"""The rest of ``paddle``: modes, seeds, old texts, saved models, metrics, data sets, and fleet as a module."""

import numpy as np
import pytest

from fleet_mpi import paddle
from fleet_mpi.errors import NotBuilt
from fleet_mpi.fleet.paddle2 import paddle_fleet
from fleet_mpi.paddle import of_1x


def test_programs_are_static():
    paddle.enable_static()
    assert paddle.in_dynamic_mode() is False
    with pytest.raises(NotBuilt, match="there is no eager mode"):
        paddle.disable_static()


def test_a_seed_is_that_of_the_default_programs():
    paddle.seed(33)
    assert paddle.static.default_main_program().random_seed == 33
    assert paddle.static.default_startup_program().random_seed == 33


def test_the_version_is_the_one_whose_names_are_here():
    assert paddle.__version__ == "2.0.2"
    paddle.utils.require_version("1.6.0")


def test_names_of_1_8_are_where_it_had_them():
    assert paddle.data is paddle.fluid.data and paddle.nn.data is paddle.fluid.data
    assert paddle.Executor is paddle.framework.Executor is paddle.static.Executor
    assert paddle.program_guard is paddle.static.program_guard and paddle.manual_seed is paddle.seed
    assert paddle.nn.functional.warpctc is paddle.fluid.layers.warpctc and paddle.nn.cond is paddle.fluid.layers.cond
    assert paddle.nn.initializer.Xavier is paddle.fluid.initializer.Xavier
    assert paddle.optimizer.AdamOptimizer is paddle.fluid.optimizer.AdamOptimizer
    assert paddle.tensor.reduce_sum is paddle.reduce_sum is paddle.fluid.layers.reduce_sum
    assert paddle.imperative is paddle.fluid.dygraph


def test_layers_that_only_eager_mode_had_say_so():
    with pytest.raises(NotBuilt, match="there is no eager mode"):
        paddle.nn.Pool2D(2, "max")


@pytest.mark.parametrize("module, names", [
    (paddle, of_1x.PADDLE), (paddle.framework, of_1x.FRAMEWORK), (paddle.tensor, of_1x.TENSOR), (paddle.nn, of_1x.NN),
    (paddle.nn.functional, {**of_1x.FUNCTIONAL, **of_1x.DETECTION}), (paddle.nn.initializer, of_1x.INITIALIZER),
    (paddle.optimizer, of_1x.OPTIMIZER)])
def test_every_name_of_1_8_is_found(module, names):
    assert all(callable(getattr(module, name)) for name in names)


def test_texts_and_bytes():
    compat = paddle.compat
    assert compat.to_text(b"ab") == compat.to_text("ab") == "ab" and compat.to_bytes(["ab", 1]) == [b"ab", 1]
    words, kept = [b"ab", [b"c"]], {b"d"}
    assert compat.to_text(words, inplace=True) is words and words == ["ab", ["c"]]
    assert compat.to_text(kept) == {"d"} and kept == {b"d"}
    assert compat.long_type(3.7) == 3 and compat.floor_division(7, 2) == 3
    assert compat.get_exception_message(ValueError("why")) == "why"


def test_a_model_for_inference_is_two_files(tmp_path):
    x = paddle.static.data("x", [None, 3])
    out = paddle.static.nn.fc(x, 2)
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    rows = np.ones((1, 3), "float32")
    expected, = exe.run(feed={"x": rows}, fetch_list=[out])
    paddle.static.save_inference_model(str(tmp_path / "model"), [x], [out], exe)
    assert {path.name for path in tmp_path.glob("[!.]*")} == {"model.pdmodel", "model.pdiparams"}
    with paddle.static.scope_guard(paddle.static.Scope()):
        program, feeds, fetches = paddle.static.load_inference_model(str(tmp_path / "model"), exe)
        found, = exe.run(program, feed={feeds[0]: rows}, fetch_list=fetches)
    assert feeds == ["x"] and (found == expected).all()


def test_accuracy_takes_a_name():
    guess, label = paddle.static.data("guess", [None, 3]), paddle.static.data("label", [None, 1], "int64")
    share = paddle.metric.accuracy(input=guess, label=label, k=2, name="mine")
    found, = paddle.static.Executor().run(feed={"guess": [[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]], "label": [[1], [2]]},
                                          fetch_list=[share.name])
    assert found[0] == 0.5


def test_fleet_is_a_module_whose_functions_are_one_objects_methods(monkeypatch):
    from fleet_mpi.paddle.distributed import fleet
    for name in ("_role_maker", "_optimizer", "main_program", "startup_program", "_origin_program", "_strategy"):
        monkeypatch.setattr(paddle_fleet, name, None)
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINER_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)
    fleet.init(is_collective=True)
    assert fleet.is_first_worker() and fleet.worker_index() == 0 and fleet.util.all_gather(1) == [1]
    assert fleet.main_program is None
    loss = paddle.mean(paddle.static.nn.fc(paddle.static.data("x", [None, 2]), 1))
    fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
    assert fleet.main_program is paddle.static.default_main_program()
    assert fleet._final_strategy().a_sync


def test_one_process_is_rank_0_of_1():
    assert (paddle.distributed.get_rank(), paddle.distributed.get_world_size()) == (0, 1)


def test_data_sets_are_readers():
    row, price = next(paddle.dataset.uci_housing.test()())
    assert len(row) == 13 and len(price) == 1
    assert paddle.dataset.mnist.TRAIN_IMAGE_URL.endswith("train-images-idx3-ubyte.gz")


def test_the_oldest_names_lead_to_the_same_things():
    assert paddle.v2.batch is paddle.batch and paddle.v2.reader is paddle.reader and paddle.v2.fluid is paddle.fluid
    paddle.v2.init(use_gpu=False, trainer_count=1)


def test_sharded_saving_is_saving(tmp_path):
    from fleet_mpi.paddle.distributed.fleet.meta_optimizers.sharding import utils
    paddle.static.nn.fc(paddle.static.data("x", [None, 2]), 1)
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    utils.save_persistables(exe, str(tmp_path), main_program=paddle.static.default_main_program(), filename=None)
    assert {path.name for path in tmp_path.glob("[!.]*")} == {"fc_0.w_0", "fc_0.b_0"}
