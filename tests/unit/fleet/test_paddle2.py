"""The fleet of 2.x: what a script calls before, around and after training, in one process."""

import numpy as np
import pytest

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.fleet.paddle2 import Fleet2
from fleet_mpi.fleet.role_makers import PaddleCloudRoleMaker
from fleet_mpi.fleet.strategy import DistributedStrategy
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, global_scope, scope_guard
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.optimizers.paddle2 import SGD, Momentum


@pytest.fixture
def fleet():
    return Fleet2().init(is_collective=True)


@pytest.mark.parametrize("given", (dict(), dict(is_collective=True), dict(role_maker=PaddleCloudRoleMaker()),
                                   dict(strategy=DistributedStrategy())),
                         ids=("nothing", "is_collective", "role_maker", "strategy"))
def test_init_takes_a_role_in_every_form(given):
    fleet = Fleet2().init(**given)
    assert fleet.is_first_worker() and fleet.worker_num() == 1 and fleet.node_num() == 1


@pytest.mark.parametrize("given, said", ((dict(strategy=3), "expected a DistributedStrategy, got int"),
                                         (dict(is_collective="yes"), "is_collective must be True or False"),
                                         (dict(role_maker=3), "expected a role maker, got int")))
def test_init_refuses_what_it_cannot_take(given, said):
    with pytest.raises(UsageError, match=said):
        Fleet2().init(**given)


def test_minimize_of_the_optimizer_and_of_fleet_are_one(fleet, loss, train):
    fleet.distributed_optimizer(SGD(0.1))
    ops, pairs = fleet.minimize(loss)
    assert len(pairs) == 2 and ops
    losses = train(default_main_program(), default_startup_program(), loss)
    assert losses[-1] < losses[0]


def test_the_strategy_of_init_serves_where_none_is_given(loss):
    strategy = DistributedStrategy()
    strategy.gradient_merge = True
    strategy.gradient_merge_configs = {"k_steps": 4}
    fleet = Fleet2().init(strategy=strategy)
    strategy.gradient_merge = False
    fleet.distributed_optimizer(SGD(0.1)).minimize(loss)
    assert fleet._final_strategy().gradient_merge
    assert "conditional_block" in [op.type for op in default_main_program().global_block().ops]


def test_the_final_strategy_has_only_what_applies():
    strategy = DistributedStrategy()
    strategy.lars = strategy.localsgd = strategy.amp = True
    fleet = Fleet2().init(strategy=strategy)
    fleet.distributed_optimizer(SGD(0.1))
    assert fleet._final_strategy().amp and not fleet._final_strategy().lars and not fleet._final_strategy().localsgd


def test_calls_that_need_an_optimizer_say_so(fleet):
    for call in (lambda: fleet.minimize(None), fleet.get_lr, lambda: fleet.set_lr(1.0), fleet.step):
        with pytest.raises(UsageError, match="call fleet.distributed_optimizer"):
            call()


def test_the_learning_rate_is_read_and_changed(fleet, loss, train):
    fleet.distributed_optimizer(SGD(0.1)).minimize(loss)
    train(default_main_program(), default_startup_program(), loss, steps=1)
    assert fleet.get_lr() == pytest.approx(0.1)
    fleet.set_lr(0.25)
    assert fleet.get_lr() == pytest.approx(0.25)


def test_eager_calls_are_refused(fleet):
    fleet.distributed_optimizer(SGD(0.1))
    for call in (fleet.step, fleet.clear_grad):
        with pytest.raises(NotBuilt, match="there is no eager mode"):
            call()


def test_one_process_keeps_every_row_and_says_so_of_a_wrong_threshold(fleet):
    assert fleet.shrink() == fleet.shrink(2) == 0
    with pytest.raises(UsageError, match="threshold: expected a whole number from 2 up, got 1"):
        fleet.shrink(1)


def test_the_model_is_its_own_distributed_model(fleet):
    model = object()
    assert fleet.distributed_model(model) is model


@pytest.mark.parametrize("call", (lambda fleet, folder: fleet.init_server(folder),
                                  lambda fleet, folder: fleet.init_server(dirname=folder)))
def test_saved_parameters_are_loaded_by_init_server(fleet, loss, train, tmp_path, call):
    fleet.distributed_optimizer(SGD(0.1)).minimize(loss)
    train(default_main_program(), default_startup_program(), loss)
    fleet.save_persistables(Executor(), str(tmp_path))
    weights = global_scope().array("fc_0.w_0").copy()
    with scope_guard(Scope()):
        call(fleet, str(tmp_path))
        assert (global_scope().array("fc_0.w_0") == weights).all()


def test_util_combines_one_worker(fleet, capsys):
    given = np.array([[1.0, 2.0]])
    combined = fleet.util.all_reduce(given, "max")
    assert combined.tolist() == given.tolist() and combined is not given
    assert fleet.util.all_gather(3) == [3] and fleet.all_reduce([1, 2]).tolist() == [1, 2]
    assert fleet.util.get_file_shard(["a"]) == ["a"]
    fleet.util.barrier()
    fleet.util.print_on_rank("here", 0)
    fleet.util.print_on_rank("not here", 1)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "fleet_mpi: here\n")


def test_util_refuses_unknown_domains_and_modes(fleet):
    with pytest.raises(UsageError, match="comm_world: expected worker, server or all, got 'everyone'"):
        fleet.util.barrier("everyone")
    with pytest.raises(UsageError, match="mode must be sum, max or min"):
        fleet.util.all_reduce([1], "mean")


def test_a_model_is_saved_for_inference_or_whole(fleet, loss, train, tmp_path):
    fleet.distributed_optimizer(SGD(0.1)).minimize(loss)
    train(default_main_program(), default_startup_program(), loss, steps=1)
    fleet.save(str(tmp_path / "model"), feed=["x", "y"], fetch=[loss])
    fleet.save(str(tmp_path / "all"))
    assert (tmp_path / "model" / "__model__").exists() and not (tmp_path / "all" / "__model__").exists()
    weight = global_scope().find_var("fc_0.w_0").get_tensor()
    before = weight.numpy().copy()
    weight.set(before + 1)
    fleet.load_model(str(tmp_path / "all"), mode=0)
    assert (weight.numpy() == before).all() and (fleet.world_size(), fleet.node_num()) == (1, 1)


def test_the_switches_that_apply_are_told_by_the_originals_names(fleet, loss):
    strategy = DistributedStrategy()
    strategy.amp = strategy.localsgd = strategy.lars = True
    fleet.distributed_optimizer(Momentum(0.1, 0.9), strategy).minimize(loss)
    # Local SGD is between workers, and there is one.
    assert fleet._get_applied_meta_list() == ["AMPOptimizer", "LarsOptimizer"] and fleet._get_applied_graph_list() == []


def test_a_debugging_run_is_noted(fleet):
    strategy = DistributedStrategy()
    strategy.set_debug_opt({"dump_fields": ["a"], "dump_param": ["b"], "other": 1})
    assert strategy.trainer_desc_configs["dump_fields"] == ["a"]
    assert strategy.trainer_desc_configs["dump_param"] == ["b"]
