"""DistributeTranspiler: options, both argument forms, and the refusal of jobs with several processes."""

import pytest

from fleet_mpi.errors import NotBuilt, UnknownName, UsageError
from fleet_mpi.program.program import Program, default_main_program
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
    ("mode", "ring", UsageError, "mode: expected pserver, nccl2 or collective, got 'ring'")))
def test_wrong_options_are_refused(name, value, error, said):
    with pytest.raises(error, match=said):
        setattr(DistributeTranspilerConfig(), name, value)


def test_small_blocks_are_refused():
    with pytest.raises(UsageError, match="min_block_size: at least 8192, got 100"):
        DistributeTranspiler(config(min_block_size=100))


def test_one_trainer_keeps_its_program(capsys):
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, pservers=SERVERS, trainers=1)
    assert transpiler.get_trainer_program() is default_main_program()
    assert "the 2 server(s) of this job have nothing to do" in capsys.readouterr().err


def test_one_trainer_without_servers_says_nothing(capsys):
    program = Program()
    transpiler = DistributeTranspiler(config(mode="nccl2"))
    transpiler.transpile(0, program, trainers="127.0.0.1:1", current_endpoint="127.0.0.1:1")
    assert transpiler.get_trainer_program() is program and capsys.readouterr().err == ""


@pytest.mark.parametrize("call", (
    lambda one: one.get_trainer_program(), lambda one: one.get_pserver_program("127.0.0.1:6174"),
    lambda one: one.get_pserver_programs("127.0.0.1:6174"), lambda one: one.get_startup_program("127.0.0.1:6174")))
def test_several_processes_are_refused(call):
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, pservers=SERVERS, trainers=2)
    with pytest.raises(NotBuilt, match="a job of 2 worker.s. and 2 server.s. in mode 'pserver'"):
        call(transpiler)


def test_workers_of_nccl2_are_counted_by_their_endpoints():
    transpiler = DistributeTranspiler(config(mode="nccl2"))
    transpiler.transpile(1, trainers=SERVERS, current_endpoint="127.0.0.1:6175")
    assert (transpiler.trainers, transpiler.trainer_id) == (2, 1)


@pytest.mark.parametrize("arguments, trainer_id", (((), 0), ((1,), 1)), ids=("without an id", "with an id"))
def test_the_oldest_form_is_understood(arguments, trainer_id):
    transpiler = DistributeTranspiler()
    transpiler.transpile([], [], *arguments, pservers=SERVERS, trainers=2)
    assert (transpiler.trainer_id, transpiler.trainers, len(transpiler.pserver_endpoints)) == (trainer_id, 2, 2)
    assert transpiler.origin_program is default_main_program()


def test_the_oldest_form_by_keywords():
    program, split = Program(), object()
    transpiler = DistributeTranspiler()
    transpiler.transpile(optimize_ops=[], params_grads=[], trainer_id=0, program=program, pservers=SERVERS,
                         trainers=1, split_method=split)
    assert transpiler.origin_program is program and transpiler.config.split_method is split


def test_half_of_the_oldest_form_is_refused():
    with pytest.raises(UsageError, match="the second argument must be the list that minimize returned"):
        DistributeTranspiler().transpile([], Program(), pservers=SERVERS)


def test_delay_compensation_is_for_asynchronous_training():
    with pytest.raises(UsageError, match="enable_dc_asgd corrects asynchronous training"):
        DistributeTranspiler(config(enable_dc_asgd=True)).transpile(0, pservers=SERVERS)
    DistributeTranspiler(config(enable_dc_asgd=True)).transpile(0, pservers=SERVERS, sync_mode=False)


def test_programs_come_after_transpile():
    with pytest.raises(UsageError, match="call transpile.* first"):
        DistributeTranspiler().get_trainer_program()
