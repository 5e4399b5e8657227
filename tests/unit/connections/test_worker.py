"""Training over plain arrays, without a Program or a Scope, gives the bits of numpy's rule; over MPI:
tests/mpi/test_connections.py."""

import subprocess
import sys
import threading

import pytest

from fleet_mpi.connections import server, worker
from fleet_mpi.connections.terms import Uplink
from fleet_mpi.connections.worker import WorkerConnection
from fleet_mpi.errors import UsageError
from fleet_mpi.wire.loopback import Loopback, Network
from tests.unit.connections.arrays_job import first_values, is_right, terms, work


def test_a_worker_that_is_the_whole_job_needs_servers_within_it():
    with pytest.raises(UsageError, match="nothing was given that makes servers"):
        worker._alone(None)


def test_one_worker_with_embedded_servers_trains_as_numpy_does():
    made, prepare = terms(), server.start_from(first_values())
    connection = WorkerConnection(made, server.embedded(made, [prepare, prepare]))
    assert is_right(work(connection, 0), 1)
    assert connection.steps == 4 and connection.is_over


def test_workers_and_servers_over_loopback_train_as_numpy_does():
    made, network, turn = terms(workers=3), Network(), threading.Lock()
    servers = [server.new_server(made, index, network.transport(index), [2, 3, 4], [0, 1],
                                 server.start_from(first_values())) for index in (0, 1)]
    ended = {}

    def advance():
        if turn.acquire(blocking=False):
            try:
                return any([one.advance() for one in servers])
            finally:
                turn.release()
        return False

    def be(worker):
        uplink = Uplink(worker, Loopback(network, 2 + worker, on_wait=advance), [0, 1])
        ended[worker] = work(WorkerConnection(made, uplink), worker)
    threads = [threading.Thread(target=be, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [is_right(ended[worker], 3) for worker in range(3)] == [True] * 3


def test_a_worker_that_has_left_trains_no_more():
    made, prepare = terms(), server.start_from(first_values())
    connection = WorkerConnection(made, server.embedded(made, [prepare, prepare]))
    connection.finish()
    connection.finish()
    with pytest.raises(UsageError, match="this worker has said goodbye to the servers"):
        connection.exchange()


def test_another_job_is_refused():
    prepare = server.start_from(first_values())
    uplink = server.embedded(terms(), [prepare, prepare])
    with pytest.raises(UsageError, match="do not run the same job: job is others with the worker and arrays"):
        WorkerConnection(terms(fingerprint={"job": "others"}), uplink)


def test_connections_know_neither_programs_nor_transpilers():
    program = ("import sys; import fleet_mpi.connections.equal, fleet_mpi.connections.server, "
               "fleet_mpi.connections.worker; "
               "print([name for name in sys.modules if name.startswith(('fleet_mpi.program', 'fleet_mpi.transpile'))])")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")
