"""Exactness over loopback: synchronous training with any servers gives the bits of one process that averages.

The cells stand in tests/exact/cells.py, the one process in averaging.py. The same cells run over MPI in
tests/mpi/inside/test_exactness.py.
"""

import numpy as np
import pytest

from fleet_mpi import fluid, update_rules
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.runtime import sessions
from fleet_mpi.wire import protocol
from tests.exact import cells
from tests.exact.averaging import averaged, differences, digest, mean, plain
from tests.exact.cells import CELLS, METHODS, RULES, Cell, Layout, layout
from tests.exact.spread import Spread, over_loopback
from tests.unit.program.building import from_scratch

NAMES = list(CELLS)
DENSE_RULES = [name for name in NAMES if name in RULES]


def assert_exact(name, one_process, layout):
    """Train the cell in this layout and compare the bits."""
    state, _ = over_loopback(CELLS[name], layout)
    assert digest(state) == digest(one_process), (layout, differences(state, one_process))


def test_every_rule_that_servers_know_is_in_the_table():
    assert {*RULES} >= {*update_rules.RULES} - {"dgc_momentum"}


@pytest.mark.parametrize("name", NAMES)
def test_any_servers_give_the_bits_of_one_process(name):
    number = NAMES.index(name)
    workers = 1 + number % 3
    one_process = averaged(CELLS[name], workers)
    for servers in (1, 2, 3, 4) if name in DENSE_RULES else (1 + number % 2, 3 + number % 2):
        assert_exact(name, one_process, layout(number + servers, servers, workers))


@pytest.mark.parametrize("name", [name for name in NAMES if "data" in name])
def test_b12_the_mean_is_over_the_workers_that_still_have_data(name):
    one_process = averaged(CELLS[name], 3)
    for servers, method in ((1, "HashName"), (3, "RoundRobin")):
        assert_exact(name, one_process, Layout(3, servers, method, True))


@pytest.mark.parametrize("name", ("rows, clip by global norm", "lamb", "schedule by hand"))
def test_servers_without_a_variable_take_part(name):
    assert_exact(name, averaged(CELLS[name], 2), Layout(2, 9, "RoundRobin", True))


@pytest.mark.parametrize("options, applied", (
    (dict(sync_mode=False, runtime_split_send_recv=True), [8, 5, 8]), (dict(sync_mode=False), [8, 5, 8]),
    (dict(sync_mode=False, enable_dc_asgd=True), [8, 5, 8]), (dict(sync_mode=False, staleness=2), [8, 5, 8]),
    (dict(sync_mode=False, geo_sgd_mode=True, geo_sgd_need_push_nums=3), [3, 2, 3])))
@pytest.mark.parametrize("kind", ("dense", "rows", "image"))
def test_b20_a_program_trains_in_every_mode_and_schedules_count_the_batches_of_all(kind, options, applied):
    cell = Cell(kind, getattr(cells, kind), lambda: fluid.optimizer.SGD(fluid.layers.exponential_decay(0.01, 10, 0.9)),
                {1: 5}, steps=8)
    state, servers = over_loopback(cell, Layout(3, 2, "RoundRobin", True, options))
    assert all(server.applied == applied for server in servers)
    assert all(np.isfinite(array).all() for array in state.values())
    if not options.get("geo_sgd_mode"):
        # The first step is number 0.
        assert [server.snapshots.counters()["@LR_DECAY_COUNTER@"].tolist() for server in servers] == [[20]] * 2


@pytest.mark.parametrize("name", ("adam", "batch norm, dropout, lamb", "rows, clip by global norm"))
def test_every_split_method_gives_the_same_bits_sliced_or_not(name):
    one_process = averaged(CELLS[name], 2)
    for method in METHODS:
        for is_sliced in (True, False):
            assert_exact(name, one_process, Layout(2, 3, method, is_sliced))


@pytest.mark.parametrize("name", ("momentum", "L2", "clip by global norm", "rows, adam", "uneven data"))
def test_pieces_and_cut_messages_give_the_same_bits(name, monkeypatch):
    one_process = averaged(CELLS[name], 3)
    for limit, nbytes in (("PIECE", 16384), ("LONG_RUN", 4096), ("LARGEST", 5000)):
        monkeypatch.setattr(protocol, limit, nbytes)
    assert_exact(name, one_process, Layout(3, 2, "RoundRobin", True))


@pytest.mark.parametrize("name", ("rmsprop, centered", "rows, lamb", "clip by global norm", "schedule warm-up",
                                  "batch norm, dropout", "own rate of a schedule"))
def test_one_worker_is_what_a_script_without_servers_does(name):
    assert digest(averaged(CELLS[name], 1)) == digest(plain(CELLS[name]))


def test_every_cell_comes_to_a_state_of_its_own():
    found = {}
    for name in NAMES:
        assert found.setdefault(digest(averaged(CELLS[name], 2)), name) == name, "this cell tests nothing"


def test_another_order_of_workers_gives_other_bits(monkeypatch):
    right = averaged(CELLS["sgd"], 3)
    monkeypatch.setattr("tests.exact.averaging.mean", lambda gradients: mean(gradients[::-1]))
    assert digest(averaged(CELLS["sgd"], 3)) != digest(right), "the batches would not show a sum in the wrong order"


def test_a_rate_that_servers_compute_can_be_fetched():
    rates = []
    for is_spread in (False, True):
        with from_scratch():
            rate = fluid.layers.exponential_decay(0.1, 2, 0.5)
            loss = cells.dense()
            fluid.optimizer.SGD(rate).minimize(loss)
            main = fluid.default_main_program()
            if is_spread:
                fluid.DistributeTranspiler().transpile(0, pservers="a:1,b:1", trainers=1)
            executor = fluid.Executor()
            executor.run(fluid.default_startup_program())
            rates.append([executor.run(main, feed=cells.feed_of(main, 0, step), fetch_list=[rate])[0].tolist()
                          for step in range(3)])
    assert rates[0] == rates[1] and len(set(map(tuple, rates[0]))) == 3


def test_a_scope_is_connected_to_one_program():
    scope = Scope()
    one, other = (Spread(CELLS["sgd"], Layout(1, 1, "RoundRobin", True)).distribution for _ in range(2))
    session = sessions.connect(one, scope)
    assert sessions.connect(one, scope) is session and sessions.session_of(scope) is session
    with pytest.raises(UsageError, match="connected to the servers of another program"):
        sessions.connect(other, scope)
    session.finish()
    assert sessions.connect(other, scope) is not session
    with pytest.raises(UsageError, match="has said goodbye"):
        session.exchange()
