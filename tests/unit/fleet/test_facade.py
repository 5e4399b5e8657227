"""The fleets of 1.x: one process is worker 0 of 1, more are refused, and a script's whole story works."""

import pytest

from fleet_mpi import notices, settings
from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.fleet.collective_strategy import DistributedStrategy
from fleet_mpi.fleet.facade import (
    CollectiveFleet,
    CollectiveOptimizer,
    Mode,
    TranspilerFleet,
    collective_fleet,
    file_shard,
)
from fleet_mpi.fleet.pslib import PSLibFleet
from fleet_mpi.fleet.role_makers import Role, UserDefinedCollectiveRoleMaker, UserDefinedRoleMaker
from fleet_mpi.fleet.transpiler_strategies import StrategyFactory
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, global_scope, scope_guard
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.optimizers.plain import SGD, Adam
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig

KINDS = pytest.mark.parametrize("kind", (TranspilerFleet, CollectiveFleet, PSLibFleet))


@KINDS
def test_one_process_trains_from_init_to_stop(kind, loss, train):
    fleet = kind()
    fleet.init()
    assert fleet.is_worker() and fleet.is_first_worker() and not fleet.is_server()
    fleet.distributed_optimizer(SGD(0.1)).minimize(loss)
    fleet.init_worker()
    losses = train(fleet.main_program, fleet.startup_program, loss)
    assert losses[-1] < losses[0]
    fleet.stop_worker()


@KINDS
def test_minimize_returns_what_the_optimizer_returns_and_keeps_the_programs(kind, loss):
    fleet = kind()
    fleet.init()
    ops, pairs = fleet.distributed_optimizer(SGD(0.1)).minimize(loss)
    assert [param.name for param, _ in pairs] == ["fc_0.w_0", "fc_0.b_0"]
    assert [op.type for op in ops if op.type == "sgd"] == ["sgd", "sgd"]
    origin = fleet._origin_program
    assert origin is not fleet.main_program
    assert [op.type for op in origin.global_block().ops] == [op.type for op in loss.block.ops]
    assert fleet.main_program is default_main_program() and fleet.startup_program is default_startup_program()


@pytest.mark.parametrize("strategy", (
    None, DistributeTranspilerConfig(), StrategyFactory.create_sync_strategy(),
    StrategyFactory.create_async_strategy(), StrategyFactory.create_half_async_strategy(),
    StrategyFactory.create_geo_strategy(10)), ids=lambda one: type(one).__name__)
def test_every_way_to_train_with_servers_is_the_same_for_one_worker(strategy, loss):
    fleet = TranspilerFleet()
    fleet.init()
    fleet.distributed_optimizer(Adam(0.1), strategy).minimize(loss)
    types = [op.type for op in fleet.main_program.global_block().ops]
    assert types.count("adam") == 2 and "send" not in types


def test_a_strategy_of_the_wrong_kind_is_refused():
    fleet = TranspilerFleet()
    fleet.init()
    with pytest.raises(UsageError, match="expected a strategy or a DistributeTranspilerConfig, got str"):
        fleet.distributed_optimizer(SGD(0.1), "sync")
    with pytest.raises(UsageError, match="expected an optimizer, got float"):
        fleet.distributed_optimizer(0.1)


@pytest.mark.parametrize("role", (
    UserDefinedRoleMaker(0, Role.WORKER, 2, ["a:1"]), UserDefinedRoleMaker(0, Role.SERVER, 1, ["a:1"]),
    UserDefinedCollectiveRoleMaker(0, ["a:1", "b:1"])), ids=("two workers", "a server", "two collective workers"))
def test_processes_begun_by_hand_are_refused_with_the_command_that_begins_them_together(role):
    with pytest.raises(EnvironmentProblem, match="it was started alone(.|\n)*mpirun.* -np 1 .* : -np 1 "):
        TranspilerFleet().init(role)


def test_servers_of_one_worker_have_nothing_to_do(capsys):
    fleet = TranspilerFleet()
    fleet.init(UserDefinedRoleMaker(0, Role.WORKER, 1, ["a:1", "b:1"]))
    assert fleet.server_num() == 2 and fleet.server_endpoints(to_string=True) == "a:1,b:1"
    assert "the 2 server(s) of this job have nothing to do" in capsys.readouterr().err


def test_a_collective_fleet_refuses_servers_among_several_processes(monkeypatch):
    monkeypatch.setattr("fleet_mpi.fleet.facade.Fleet.is_alone", lambda self: False)
    roles = dict(current_id=0, role=Role.WORKER, worker_num=1, server_endpoints=["a:1"])
    TranspilerFleet().init(UserDefinedRoleMaker(**roles))
    with pytest.raises(UsageError, match="trains without servers, and the role maker has 1: use PaddleCloudRoleMaker"):
        CollectiveFleet().init(UserDefinedRoleMaker(**roles))
    CollectiveFleet().init(UserDefinedCollectiveRoleMaker(0, ["a:1"]))


def test_without_a_role_maker_a_collective_fleet_has_workers_only():
    fleet = CollectiveFleet()
    with settings.override(PADDLE_TRAINER_ENDPOINTS="a:1", PADDLE_PSERVERS_IP_PORT_LIST="b:1,b:2"):
        fleet.init()
    assert fleet.worker_endpoints() == ["a:1"] and fleet.server_num() == 0 and fleet.is_first_worker()


def test_a_collective_fleet_says_that_there_is_nothing_to_start_or_stop(capsys, monkeypatch):
    monkeypatch.setattr(notices, "_said", set())
    fleet = CollectiveFleet()
    with pytest.raises(UsageError, match="call fleet.init.. first"):
        fleet.init_worker()
    fleet.init()
    for call in (fleet.init_worker, fleet.run_worker, fleet.init_server, fleet.run_server, fleet.stop_worker):
        call()
        assert f"fleet.{call.__name__}: a collective job has no servers" in capsys.readouterr().err


def test_the_collective_optimizer_of_1_x_belongs_to_its_fleet(loss):
    collective_fleet.init()
    CollectiveOptimizer(SGD(0.1), DistributedStrategy()).minimize(loss)
    assert collective_fleet._transpiled_program is collective_fleet.main_program is default_main_program()
    assert collective_fleet._origin_program is not None


def test_nothing_works_before_init():
    fleet = TranspilerFleet()
    for call in (fleet.is_worker, fleet.init_worker, fleet.stop_worker, lambda: fleet.distributed_optimizer(SGD(0.1))):
        with pytest.raises(UsageError, match="call fleet.init.. first"):
            call()


def test_what_is_no_role_maker_is_refused():
    with pytest.raises(UsageError, match="expected a role maker, got str"):
        TranspilerFleet().init("worker")


def test_a_worker_does_not_serve():
    fleet = TranspilerFleet()
    fleet.init()
    with pytest.raises(UsageError, match="run_server: this process is a worker"):
        fleet.run_server()


def test_parameters_are_saved_and_loaded(tmp_path, loss, train):
    fleet = CollectiveFleet()
    fleet.init()
    fleet.distributed_optimizer(SGD(0.1)).minimize(loss)
    train(fleet.main_program, fleet.startup_program, loss)
    weights = global_scope().array("fc_0.w_0").copy()
    fleet.save_persistables(Executor(), str(tmp_path))
    with scope_guard(Scope()):
        fleet.init_server(str(tmp_path))
        assert (global_scope().array("fc_0.w_0") == weights).all()


def test_the_inference_model_has_no_training_in_it(tmp_path, loss, train):
    fleet = TranspilerFleet()
    fleet.init()
    fleet.distributed_optimizer(SGD(0.1)).minimize(loss)
    train(fleet.main_program, fleet.startup_program, loss)
    names = fleet.save_inference_model(Executor(), str(tmp_path), ["x", "y"], [loss])
    assert names == [loss.name] and {path.name for path in tmp_path.glob("[!.]*")} == {"__model__", "fc_0.b_0",
                                                                                       "fc_0.w_0"}


def test_pslib_takes_a_list_of_losses_and_its_table_settings(loss):
    fleet = PSLibFleet()
    fleet.init()
    fleet._set_client_communication_config(1, 2, 3)
    optimizer = fleet.distributed_optimizer(SGD(0.1), strategy={"embedding": {"sparse_embedx_dim": 8}})
    _, pairs = optimizer.minimize([loss], startup_programs=[default_startup_program()])
    assert len(pairs) == 2
    with pytest.raises(UsageError, match="expected a startup program per loss, got 2 for 1"):
        optimizer.minimize(loss, startup_programs=[default_startup_program()] * 2)


def test_the_transpiler_fleet_takes_one_loss_and_scopes_second(loss):
    fleet = TranspilerFleet()
    fleet.init()
    with pytest.raises(UsageError, match="expected one loss, got a list"):
        fleet.distributed_optimizer(SGD(0.1)).minimize([loss])
    fleet.distributed_optimizer(SGD(0.1)).minimize(loss, None, default_startup_program())
    assert fleet.startup_program is default_startup_program()


@pytest.mark.parametrize("count", (1, 3, 4, 7))
def test_files_are_cut_into_contiguous_parts_the_first_longer(count):
    files = [f"part-{number}" for number in range(10)]
    parts = [file_shard(files, index, count) for index in range(count)]
    assert sum(parts, []) == files
    lengths = [len(part) for part in parts]
    assert lengths == sorted(lengths, reverse=True) and lengths[0] - lengths[-1] <= 1


def test_files_that_are_no_list_are_refused():
    fleet = TranspilerFleet()
    fleet.init()
    assert fleet.split_files(["a", "b"]) == ["a", "b"]
    with pytest.raises(UsageError, match="files: expected a list of paths, got str"):
        fleet.split_files("a,b")


def test_the_kinds_have_the_numbers_of_the_original():
    assert (Mode.TRANSPILER, Mode.PSLIB, Mode.COLLECTIVE) == (1, 2, 3)
