"""Inference by a config and tensors without a program: the values of the executor, in a scope of its own."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UsageError


@pytest.fixture
def config(tmp_path):
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    pooled = fluid.layers.sequence_pool(fluid.layers.embedding(words, [5, 2], param_attr="table"), "sum")
    fluid.Executor().run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["words"], [pooled], fluid.Executor())
    made = fluid.core.NativeConfig()
    made.model_dir, made.use_gpu = str(tmp_path), False
    return made


def tensor():
    given = fluid.create_lod_tensor(np.array([[1], [2], [3]], "int64"), [[2, 1]])
    made = fluid.core.PaddleTensor()
    made.lod, made.shape = given.lod(), given.shape()
    made.data, made.dtype = fluid.core.PaddleBuf(np.array(given)), fluid.core.PaddleDType.INT64
    return made


def test_a_compiled_program_runs_what_the_config_names(config):
    table = fluid.global_scope().find_var("table").get_tensor().numpy().copy()
    compiled = fluid.compiler.CompiledProgram(fluid.default_main_program())
    compiled._with_inference_optimize(config)
    fluid.global_scope().find_var("table").get_tensor().set(table * 0)  # the predictor has its own
    result, = fluid.Executor(fluid.CPUPlace()).run(compiled, feed=[tensor()])
    assert compiled._is_inference is True and result.shape == [2, 2]
    assert np.allclose(result.data.float_data(), [*(table[1] + table[2]), *table[3]])


def test_a_predictor_takes_a_tensor_per_feed(config):
    predictor = fluid.core.create_paddle_predictor(config)
    assert predictor.run([tensor()])[0].as_ndarray().shape == (2, 2)
    with pytest.raises(UsageError, match=r"expected 1 tensors, one for each of \['words'\], got 2"):
        predictor.run([tensor(), tensor()])
    with pytest.raises(UsageError, match="set model_dir"):
        fluid.core.NativeConfig().predictor()


def test_buffers_give_their_values_as_lists():
    made = fluid.core.PaddleTensor(np.array([[1.5, 2]], "float32"), "x")
    assert (made.name, made.shape, made.dtype) == ("x", [1, 2], fluid.core.PaddleDType.FLOAT32)
    assert made.data.tolist() == [1.5, 2.0] and made.data.int64_data() == [1, 2] and made.data.length() == 8
