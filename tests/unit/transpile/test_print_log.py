"""``print_log``: what the transpiler does to a program, line by line, and nothing unless it is asked for."""

import pytest

from fleet_mpi import fluid, settings
from fleet_mpi.fleet.job import Job
from fleet_mpi.fleet.role_makers import Role, UserDefinedRoleMaker
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspiler, DistributeTranspilerConfig
from fleet_mpi.transpile.print_log import difference

SERVERS = "127.0.0.1:6174,127.0.0.1:6175"


@pytest.fixture
def said(capsys):
    """The lines of the transpiler on stderr."""
    def lines():
        return [line.removeprefix("fleet_mpi: transpiler: ") for line in capsys.readouterr().err.splitlines()
                if line.startswith("fleet_mpi: transpiler: ")]
    return lines


@pytest.fixture
def chosen():
    """A config that asks for the log."""
    made = DistributeTranspilerConfig()
    made.print_log = True
    return made


@pytest.fixture(autouse=True)
def model():
    """A layer with a weight that is cut in two, and a bias that is not."""
    x = fluid.layers.data(name="x", shape=[1000])
    loss = fluid.layers.mean(fluid.layers.fc(x, 20, param_attr="w", bias_attr="b"))
    fluid.optimizer.Adam(0.1).minimize(loss)


def test_every_variable_its_blocks_and_all_ops_are_told(chosen, said):
    transpiler = DistributeTranspiler(chosen)
    transpiler.transpile(0, pservers=SERVERS, trainers=2)
    lines = said()
    assert lines[:6] == [
        "mode sync, 2 worker(s), 2 server(s), 2 variable(s) in 3 block(s)",
        "b float32 [20]: 1 block(s)",
        "  b [20], from row 0, 20 elements, 80 bytes: server 0 (127.0.0.1:6174)",
        "w float32 [1000, 20]: 2 block(s)",
        "  w.block0 [500, 20], from row 0, 10,000 elements, 40,000 bytes: server 1 (127.0.0.1:6175)",
        "  w.block1 [500, 20], from row 500, 10,000 elements, 40,000 bytes: server 0 (127.0.0.1:6174)"]
    for line in ("main program: adds split_byref(w@GRAD) -> w@GRAD.block0, w@GRAD.block1",
                 "main program: adds send(w@GRAD.block0, w@GRAD.block1)", "main program: adds recv() -> b",
                 "startup program: adds fetch_barrier()"):
        assert line in lines
    assert any(line.startswith("main program: takes out adam(") for line in lines)
    transpiler.get_pserver_program("127.0.0.1:6175")
    assert any("adam(" in line and "w.block0" in line for line in said() if line.startswith("server 1, block "))


def test_nothing_is_told_unasked(said):
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, pservers=SERVERS, trainers=2)
    transpiler.get_pserver_program("127.0.0.1:6175")
    assert said() == []


def test_one_rank_speaks_for_all(chosen, said):
    with settings.override(PMI_RANK=1):
        DistributeTranspiler(chosen).transpile(0, pservers=SERVERS, trainers=2)
    assert said() == []


def test_modes_without_servers_tell_their_ops(chosen, said):
    chosen.mode, chosen.collective_mode = "collective", "grad_allreduce"
    DistributeTranspiler(chosen).transpile(0, trainers=SERVERS, current_endpoint="127.0.0.1:6174")
    lines = said()
    assert lines and all(": adds c_" in line or ": adds scale" in line for line in lines), lines


class Op:
    """An op by its names."""

    def __init__(self, kind, reads=(), writes=()):
        self.type, self.input_arg_names, self.output_arg_names = kind, reads, writes


def test_ops_that_come_go_or_change_their_type_differ():
    stays, goes, changes = Op("mul"), Op("sgd", ["w", "w@GRAD"], ["w"]), Op("uniform_random", (), ["table"])
    before = [(op, op.type) for op in (stays, goes, changes)]
    changes.type = "fake_init"
    assert list(difference(before, [stays, changes, Op("recv", (), ["w"])])) == [
        "takes out sgd(w, w@GRAD) -> w", "makes uniform_random fake_init() -> table", "adds recv() -> w"]


@pytest.mark.parametrize("role, told",
                         (("worker", "main program: adds recv() -> b"), ("server", "server 0, block 0: listen")))
def test_the_fleet_tells_each_role_its_part(chosen, said, role, told):
    maker = UserDefinedRoleMaker(current_id=0, role=Role.WORKER if role == "worker" else Role.SERVER, worker_num=2,
                                 server_endpoints=SERVERS.split(","))
    Job(maker, fluid.default_main_program(), fluid.default_startup_program(), chosen, True)
    lines = said()
    assert lines[0].startswith("mode sync, 2 worker(s)") and any(line.startswith(told) for line in lines)
