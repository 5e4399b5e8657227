"""DistributeTranspiler: options, all argument forms, and what it gives out."""

import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UnknownName, UsageError
from fleet_mpi.program.graph.program import Program, default_main_program
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspiler, DistributeTranspilerConfig

SERVERS = "127.0.0.1:6174,127.0.0.1:6175"


def config(**options):
    """A config with these options."""
    made = DistributeTranspilerConfig()
    for name, value in options.items():
        setattr(made, name, value)
    return made


def test_options_have_the_defaults_of_the_original():
    made = DistributeTranspilerConfig()
    assert (made.slice_var_up, made.split_method, made.min_block_size, made.mode, made.sync_mode) == (
        True, None, 8192, "pserver", True)
    assert (made.geo_sgd_need_push_nums, made.nccl_comm_num, made.wait_port, made.print_log) == (100, 1, True, False)


@pytest.mark.parametrize("name, value, error, said", (
    ("sync_mod", True, UnknownName, "has no option 'sync_mod'; did you mean 'sync_mode'"),
    ("sync_mode", None, UsageError, "sync_mode: expected True or False, got None"),
    ("min_block_size", 100, UsageError, "min_block_size: expected a whole number, at least 8192, got 100"),
    ("min_block_size", 1e4, UsageError, "min_block_size: expected a whole number"),
    ("mode", "ring", UsageError, "mode: expected pserver, nccl2 or collective, got 'ring'")))
def test_wrong_options_are_refused(name, value, error, said):
    with pytest.raises(error, match=said):
        setattr(DistributeTranspilerConfig(), name, value)


@pytest.fixture(autouse=True)
def minimized(network):
    """The default programs have something to transpile; gives what minimize returned."""
    return fluid.optimizer.SGD(0.1).minimize(network())


def test_the_given_programs_are_the_workers_and_change_in_place(capsys):
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, pservers=SERVERS, trainers=1)
    assert transpiler.get_trainer_program() is default_main_program()
    assert transpiler.get_trainer_program(wait_port=False) is default_main_program()
    for program in (default_main_program(), fluid.default_startup_program()):
        assert "recv" in [op.type for op in program.global_block().ops]
    assert capsys.readouterr() == ("", "")


def test_programs_may_be_given():
    main, startup = default_main_program().clone(), fluid.default_startup_program().clone()
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, program=main, startup_program=startup, pservers=SERVERS, trainers=2)
    assert transpiler.get_trainer_program() is main
    assert "recv" in [op.type for op in startup.global_block().ops]
    assert "recv" not in [op.type for op in fluid.default_startup_program().global_block().ops]


def test_a_server_is_asked_for_by_its_label():
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, pservers=SERVERS.replace(",", ", "), trainers=2)
    main, startup = transpiler.get_pserver_programs("127.0.0.1:6175")
    assert main.global_block().ops[0].attr("endpoint") == "127.0.0.1:6175"
    assert str(transpiler.get_startup_program("127.0.0.1:6175", main)) == str(startup)
    assert str(transpiler.get_startup_program("127.0.0.1:6175", main, startup_program=startup)) == str(startup)
    with pytest.raises(UsageError, match="no server has the label '127.0.0.1:6177'"):
        transpiler.get_pserver_program("127.0.0.1:6177")


def test_options_that_only_the_original_needs_are_accepted(capsys):
    made = config(print_log=True, wait_port=False, nccl_comm_num=2, collective_mode="grad_allreduce")
    transpiler = DistributeTranspiler(config=made)
    transpiler.transpile(trainer_id=0, pservers=SERVERS, trainers=2, current_endpoint="127.0.0.1:6174")
    transpiler.get_trainer_program(wait_port=True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("arguments, said", (
    (dict(pservers=""), "pservers: expected 'host:port' texts"),
    (dict(pservers="a:1,a:1"), "the same endpoint twice"),
    (dict(pservers=SERVERS, trainers=0), "trainers: expected a whole number from 1 up, got 0"),
    (dict(pservers=SERVERS, trainers="2"), "trainers: expected a whole number from 1 up, got '2'"),
    (dict(pservers=SERVERS, trainers=2, trainer_id=-1), "trainer_id: expected a number from 0 up, got -1")))
def test_a_job_that_cannot_be_is_refused(arguments, said):
    with pytest.raises(UsageError, match=said):
        DistributeTranspiler().transpile(**{"trainer_id": 0, **arguments})


def test_a_program_is_transpiled_once():
    DistributeTranspiler().transpile(0, pservers=SERVERS, trainers=2)
    with pytest.raises(UsageError, match="this program was transpiled before"):
        DistributeTranspiler().transpile(0, pservers=SERVERS, trainers=2)


def test_one_trainer_without_servers_says_nothing(capsys):
    program = Program()
    transpiler = DistributeTranspiler(config(mode="nccl2"))
    transpiler.transpile(0, program, trainers="127.0.0.1:1", current_endpoint="127.0.0.1:1")
    assert transpiler.get_trainer_program() is program and capsys.readouterr().err == ""


def test_a_mode_without_servers_has_no_programs_for_them():
    transpiler = DistributeTranspiler(config(mode="nccl2"))
    transpiler.transpile(0, trainers=SERVERS, current_endpoint="127.0.0.1:6174")
    assert transpiler.get_trainer_program() is default_main_program()
    with pytest.raises(UsageError, match="mode 'nccl2' has no servers: all processes run get_trainer_program"):
        transpiler.get_pserver_program("127.0.0.1:6174")


def test_workers_of_nccl2_are_counted_by_their_endpoints():
    transpiler = DistributeTranspiler(config(mode="nccl2"))
    transpiler.transpile(1, trainers=SERVERS, current_endpoint="127.0.0.1:6175")
    assert (transpiler.trainers, transpiler.trainer_id) == (2, 1)


@pytest.mark.parametrize("arguments, worker", (((), None), ((1,), 1)), ids=("without an id", "with an id"))
def test_the_oldest_form_is_understood(minimized, arguments, worker):
    transpiler = DistributeTranspiler()
    transpiler.transpile(*minimized, *arguments, pservers=SERVERS, trainers=2)
    assert (transpiler.trainer_id, transpiler.trainers, len(transpiler.pserver_endpoints)) == (worker or 0, 2, 2)
    assert transpiler.distribution.worker == worker
    assert transpiler.origin_program is default_main_program()


def test_the_oldest_form_by_keywords(minimized):
    optimize_ops, params_grads = minimized
    program = default_main_program().clone()
    transpiler = DistributeTranspiler()
    transpiler.transpile(optimize_ops=optimize_ops, params_grads=params_grads, trainer_id=0, program=program,
                         pservers=SERVERS, trainers=1, split_method=fluid.transpiler.HashName, sync_mode=False)
    assert transpiler.origin_program is program and transpiler.config.split_method is fluid.transpiler.HashName
    assert transpiler.distribution.mode.name == "half_async"


def test_half_of_the_oldest_form_is_refused():
    with pytest.raises(UsageError, match="the second argument must be the list that minimize returned"):
        DistributeTranspiler().transpile([], Program(), pservers=SERVERS)


def test_delay_compensation_is_for_asynchronous_training():
    with pytest.raises(UsageError, match="enable_dc_asgd corrects asynchronous training"):
        DistributeTranspiler(config(enable_dc_asgd=True)).transpile(0, pservers=SERVERS)
    transpiler = DistributeTranspiler(config(enable_dc_asgd=True))
    transpiler.transpile(0, pservers=SERVERS, sync_mode=False)
    assert transpiler.distribution.mode.name == "delay_compensated"


def test_programs_come_after_transpile():
    with pytest.raises(UsageError, match="call transpile.* first"):
        DistributeTranspiler().get_trainer_program()
