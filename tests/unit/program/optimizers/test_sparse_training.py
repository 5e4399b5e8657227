"""Optimizers over real embeddings: a row gradient trains as the dense one does."""

import numpy as np
import pytest

from fleet_mpi.program.build.amp import decorate
from fleet_mpi.program.build.clip import ClipByGlobalNorm, ClipByNorm, ClipByValue
from fleet_mpi.program.build.initializers import NumpyArray
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.build.regularizers import L2Decay
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.optimizers import plain
from tests.unit.program.building import add, data, from_scratch, mean, mul

rng = np.random.default_rng(0)
TABLE = rng.normal(size=(9, 3)).astype("float32")
# The batches differ in size, so that more than one plan is made.
IDS = [np.array(ids).reshape(-1, 1) for ids in ([3, 7, 3, 1], [0, 0], [8, 3, 2, 3, 3])]


def train(make, is_sparse, uses=1):
    """The table after some steps; with two uses its gradient is a sum."""
    with from_scratch():
        attr = ParamAttr("table", NumpyArray(TABLE))
        ids = data("ids", [-1, 1], "int64")
        value = embedding(ids, [9, 3], is_sparse=is_sparse, param_attr=attr)
        for _ in range(uses - 1):
            value = add(value, embedding(ids, [9, 3], is_sparse=is_sparse, param_attr=attr))
        _, pairs = make().minimize(mean(mul(value, value)))
        assert (pairs[0][1].type == VarType.SELECTED_ROWS) == is_sparse
        executor = Executor()
        executor.run(default_startup_program())
        for batch in IDS * 2:
            executor.run(feed={"ids": batch})
        return global_scope().array("table").copy()


@pytest.mark.parametrize("uses", [1, 2])
@pytest.mark.parametrize("name", ["SGD", "Adagrad", "Adam", "Adamax", "RMSProp", "Lamb"])
def test_a_row_gradient_trains_as_the_dense_one_does(name, uses):
    def make():
        return getattr(plain, name)(0.5)
    rows, dense = train(make, True, uses), train(make, False, uses)
    np.testing.assert_allclose(rows, dense, rtol=1e-4, atol=1e-6)
    assert abs(rows - TABLE).max() > 0.01


@pytest.mark.parametrize("make", [
    lambda: plain.SGD(0.5, grad_clip=ClipByValue(0.1)), lambda: plain.SGD(0.5, grad_clip=ClipByNorm(0.2)),
    lambda: plain.SGD(0.5, grad_clip=ClipByGlobalNorm(0.2)), lambda: plain.Momentum(0.5, 0.9),
    lambda: plain.SGD(0.5, regularization=L2Decay(0.1)), lambda: decorate(plain.SGD(0.5)),
    lambda: plain.SGD(0.5, grad_clip=ClipByGlobalNorm(0.2), regularization=L2Decay(0.1)),
])
@pytest.mark.parametrize("uses", [1, 2])
def test_clip_decay_and_loss_scaling_take_rows(make, uses):
    np.testing.assert_allclose(train(make, True, uses), train(make, False, uses), rtol=1e-5, atol=1e-7)


def test_lazy_adam_leaves_unmentioned_rows_alone():
    untouched = [4, 5, 6]
    lazy = train(lambda: plain.Adam(0.5, lazy_mode=True), True)
    np.testing.assert_array_equal(lazy[untouched], TABLE[untouched])
    eager = train(lambda: plain.Adam(0.5), True)
    assert abs(lazy[0] - eager[0]).max() > 1e-3, "row 0 goes on by its moments where Adam is not lazy"
