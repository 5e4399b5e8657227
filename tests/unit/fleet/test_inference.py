"""DistributedInfer: a network built for inference finds what was trained."""

import pytest

from fleet_mpi.checkpoint.saving import save_persistables
from fleet_mpi.fleet import inference
from fleet_mpi.fleet.inference import DistributedInfer
from fleet_mpi.fleet.paddle2 import Fleet2
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, global_scope, scope_guard
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.optimizers.plain import SGD
from tests.unit.program.building import from_scratch


@pytest.fixture
def built():
    """(main program, startup program, prediction) of the network of the fixture ``loss``, for inference."""
    with from_scratch() as (main, startup):
        return main, startup, fc(data(name="x", shape=[4]), 1)


def test_the_program_finds_the_trained_parameters(loss, train, built):
    SGD(0.1).minimize(loss)
    train(default_main_program(), default_startup_program(), loss)
    main, startup, guess = built
    program = DistributedInfer(main_program=main, startup_program=startup).get_dist_infer_program()
    rows = [[1.0, 2.0, 3.0, 4.0]]
    found, = Executor().run(program, feed={"x": rows}, fetch_list=[guess])
    weights, bias = (global_scope().array(name) for name in ("fc_0.w_0", "fc_0.b_0"))
    assert found[0, 0] == pytest.approx((rows @ weights + bias).item(), rel=1e-5)


def test_saved_parameters_are_loaded(loss, train, built, tmp_path, monkeypatch):
    fleet = Fleet2()
    monkeypatch.setattr(inference, "paddle_fleet", fleet)
    fleet.init()
    fleet.distributed_optimizer(SGD(0.1)).minimize(loss)
    train(default_main_program(), default_startup_program(), loss)
    fleet.save_persistables(Executor(), str(tmp_path))
    weights = global_scope().array("fc_0.w_0").copy()
    infer = DistributedInfer(*built[:2])
    infer.init_distributed_infer_env(Executor(), loss, dirname=str(tmp_path))
    assert (global_scope().array("fc_0.w_0") == weights).all()


def test_what_was_trained_is_kept_where_nothing_is_to_be_loaded(loss, train, built, monkeypatch):
    fleet = Fleet2()
    monkeypatch.setattr(inference, "paddle_fleet", fleet)
    fleet.init()
    fleet.distributed_optimizer(SGD(0.1)).minimize(loss)
    train(default_main_program(), default_startup_program(), loss)
    weights = global_scope().array("fc_0.w_0").copy()
    DistributedInfer(*built[:2]).init_distributed_infer_env(Executor(), loss)
    assert (global_scope().array("fc_0.w_0") == weights).all()


def test_without_a_training_a_network_starts_from_its_folder(loss, train, built, tmp_path, monkeypatch):
    SGD(0.1).minimize(loss)
    train(default_main_program(), default_startup_program(), loss)
    save_persistables(Executor(), str(tmp_path))
    weights = global_scope().array("fc_0.w_0").copy()
    monkeypatch.setattr(inference, "paddle_fleet", Fleet2())
    with scope_guard(Scope()):
        DistributedInfer(*built[:2]).init_distributed_infer_env(Executor(), built[2], dirname=str(tmp_path))
        assert (global_scope().array("fc_0.w_0") == weights).all()


def test_without_programs_the_default_ones_are_meant():
    assert DistributedInfer().get_dist_infer_program() is default_main_program()
