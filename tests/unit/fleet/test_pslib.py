"""The pslib fleet: models saved and loaded whole; single tables and uncommitted updates are refused."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import NotBuilt, ProgramError
from fleet_mpi.fleet.pslib import PSLibFleet, fleet_embedding
from fleet_mpi.fluid.incubate.fleet.parameter_server import pslib


@pytest.fixture
def fleet():
    made = PSLibFleet()
    made.init()
    with fleet_embedding(click_name="click"):
        rows = fluid.layers.embedding(fluid.data("ids", [None, 1], "int64"), [5, 2], param_attr="table")
    made.distributed_optimizer(fluid.optimizer.Adam(0.1)).minimize([fluid.layers.mean(rows)])
    fluid.Executor().run(fluid.default_startup_program())
    return made


def test_a_model_is_saved_and_loaded_whole(fleet, tmp_path):
    table = fluid.global_scope().find_var("table").get_tensor()
    before = table.numpy().copy()
    fleet.save_model(str(tmp_path), mode=0)
    table.set(before * 0)
    fleet.load_model(str(tmp_path), mode=0)
    assert (table.numpy() == before).all()


@pytest.mark.parametrize("name, given, sentence", (
    ("save_one_table", (0, "path"), "tables have no numbers"),
    ("load_one_table", (0, "path"), "tables have no numbers"),
    ("clear_one_table", (0,), "tables have no numbers"), ("confirm", (), "no uncommitted updates"),
    ("revert", (), "no uncommitted updates"), ("shrink_dense_table", (), "no rows to drop")))
def test_what_concerns_single_tables_is_refused(fleet, name, given, sentence):
    with pytest.raises(NotBuilt, match=f"fleet.{name}: .*{sentence}"):
        getattr(fleet, name)(*given)


def test_distributed_embeddings_of_pslib_take_any_id():
    with fleet_embedding(click_name="click"):
        ids = fluid.data("ids", [None, 1], "int64")
        inside = fluid.layers.embedding(ids, [5, 2], is_sparse=True, is_distributed=True)
    outside = fluid.layers.embedding(ids, [5, 2], is_sparse=True, is_distributed=True)
    patched = pslib._fleet_embedding(input=ids, size=[5, 2], is_sparse=True, is_distributed=True)
    exe, far = fluid.Executor(), {"ids": np.array([[10 ** 12], [-1]])}
    exe.run(fluid.default_startup_program())
    assert all(one.shape == (2, 2) for one in exe.run(feed=far, fetch_list=[inside, patched]))
    with pytest.raises(ProgramError, match="is outside"):
        exe.run(feed=far, fetch_list=[outside])


def test_its_tables_shrink_by_the_threshold_of_the_original(fleet):
    assert fleet.shrink_sparse_table() is None
