"""Embedding layers."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import embedding as layers
from fleet_mpi.program.layers.data import data, static_data


def ids_fed(*shape, **fields):
    return data("ids", list(shape) or [1], dtype="int64", **fields)


def last_op():
    return default_main_program().global_block().ops[-1]


def test_the_table_is_a_parameter_of_the_layer():
    out = layers.embedding(ids_fed(), [10, 4])
    table, = default_main_program().all_parameters()
    assert table.name == "embedding_0.w_0" and table.shape == (10, 4) and out.shape == (-1, 4)
    assert last_op().type == "lookup_table" and last_op().attr("padding_idx") == -1 and not last_op().attr("is_sparse")


def test_both_forms_of_ids():
    one = layers.embedding(ids_fed(1, lod_level=1), [10, 4], is_sparse=True, is_distributed=True)
    assert last_op().attr("is_sparse") and last_op().attr("is_distributed") and one.lod_level == 1
    assert default_main_program().all_parameters()[0].is_distributed
    two = layers.embedding_v2(static_data("many", [-1, 7], "int64"), [10, 4])
    assert two.shape == (-1, 7, 4) and last_op().type == "lookup_table_v2"


def test_a_named_table_is_shared():
    for name in "ab":
        layers.embedding(data(name, [1], dtype="int64"), [10, 4], param_attr=ParamAttr(name="shared"))
    assert [param.name for param in default_main_program().all_parameters()] == ["shared"]


def test_padding_counts_from_the_end_too():
    layers.embedding(ids_fed(), [10, 4], padding_idx=-1)
    assert last_op().attr("padding_idx") == 9
    with pytest.raises(UsageError, match="padding_idx 10"):
        layers.embedding(ids_fed(), [10, 4], padding_idx=10)


def test_a_sparse_table_takes_any_id():
    out = layers.sparse_embedding(ids_fed(1, lod_level=1), [10, 4], param_attr=ParamAttr(
        name="deep", initializer=Constant(0.01)))
    assert out.shape == (-1, 4) and out.lod_level == 1
    executor = Executor()
    executor.run(default_startup_program())
    found, = executor.run(feed={"ids": np.array([[10 ** 10], [-1], [3]])}, fetch_list=[out])
    np.testing.assert_array_equal(found, np.full((3, 4), 0.01, "float32"))


def test_a_sparse_table_keeps_its_ids_beside_it():
    layers.sparse_embedding(ids_fed(), [10, 4], param_attr="deep", is_test=True)
    block = default_main_program().global_block()
    assert block.var("deep@KEYS").persistable and block.var("deep@INDEX").persistable
    assert [param.name for param in default_main_program().all_parameters()] == ["deep"]
    assert last_op().attr("is_test") and last_op().attr("entry") == "none"


def test_an_admission_rule_is_kept_for_servers():
    class Entry:
        def _to_attr(self):
            return "count_filter_entry:10"
    layers.sparse_embedding(ids_fed(), [10, 4], entry=Entry())
    assert last_op().attr("entry") == "count_filter_entry:10"


@pytest.mark.parametrize("height", (-1, 1 << 31, 10 ** 10))
def test_a_distributed_table_whose_height_cannot_bind_takes_any_id(height):
    first = layers.embedding(ids_fed(), [height, 4], is_sparse=True, is_distributed=True)
    second = layers.embedding_v2(static_data("many", [-1, 1], "int64"), [height, 4], is_distributed=True)
    assert last_op().type == "sparse_table_lookup" and first.shape == (-1, 4) and second.shape == (-1, 1, 4)
    executor, far = Executor(), np.array([[10 ** 15], [-2]])
    executor.run(default_startup_program())
    found = executor.run(feed={"ids": far, "many": far}, fetch_list=[first, second])
    assert [one.shape for one in found] == [(2, 4), (2, 1, 4)] and np.isfinite(found[0]).all()


def test_the_height_of_a_distributed_table_binds():
    layers.embedding(ids_fed(), [10, 4], is_sparse=True, is_distributed=True)
    assert last_op().type == "lookup_table"
