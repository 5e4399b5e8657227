"""A cell spread over workers and servers, over loopback or MPI: its training, and what the job keeps in the end."""

import threading

import fleet_mpi.fluid as fluid
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.runtime import sessions
from fleet_mpi.wire.loopback import Loopback, Network
from tests.exact.cells import built, feed_of
from tests.unit.program.building import from_scratch


class Spread:
    """A transpiled cell, as one process of the job has it."""

    def __init__(self, cell, layout):
        self.cell, self.layout = cell, layout
        with from_scratch():
            self.made = built(cell)
            self.persistable = {var.name for var in self.made.main.list_vars() if var.persistable}
            transpiler = fluid.DistributeTranspiler(layout.config())
            transpiler.transpile(None, pservers=",".join(layout.endpoints()), trainers=layout.workers)
        self.distribution = transpiler.distribution

    @property
    def last_worker(self):
        """The first of the workers that train longest: after its last round nothing changes any more."""
        ends = [min(self.cell.steps, self.cell.ends.get(worker, self.cell.steps))
                for worker in range(self.layout.workers)]
        return ends.index(max(ends))

    def work(self, uplink):
        """Be one worker to the end; the last worker returns the state of the job, the others None."""
        worker, scope, executor = uplink.worker, Scope(), Executor()
        executor.worker = worker
        session = sessions.connect(self.distribution, scope, uplink)
        executor.run(self.made.startup, scope=scope)
        for step in range(self.cell.steps):
            if self.cell.has_data(worker, step):
                executor.run(self.made.main, feed=feed_of(self.made.main, worker, step), fetch_list=[self.made.loss],
                             scope=scope)
                if self.made.scheduler is not None:
                    self.made.scheduler.step()
        state = state_of(session, self.persistable) if worker == self.last_worker else None
        session.finish()
        return state

    def new_server(self, index, transport, servers, workers):
        """Server number ``index``; ``servers`` and ``workers`` are the ranks of all."""
        return sessions.new_server(self.distribution, index, transport, workers, servers,
                                   sessions.started_scope(self.distribution, index), names="rank {}".format)


def state_of(session, persistable):
    """What the servers keep of these variables and, of the rest, what this worker has."""
    whole, scope = ServerState(session.client), session.scope
    kept = whole.inventory.by_program_name(session.distribution.counters())
    found = {name: whole.fetch(one) for name, one in kept.items()}
    own = {name: scope.array(name) for name in persistable - set(found)}
    return {name: array for name, array in {**own, **found}.items() if array is not None and name in persistable}


def over_loopback(cell, layout):
    """(state, servers) after a cell was trained by threads: ranks from 0 on serve, the others work."""
    spread = [Spread(cell, layout) for _ in range(layout.workers)]
    network, turn = Network(), threading.Lock()
    ranks = list(range(layout.servers))
    workers = list(range(layout.servers, layout.servers + layout.workers))
    servers = [spread[0].new_server(index, network.transport(index), ranks, workers) for index in ranks]

    def serve():
        """Whoever waits lets the servers go on, one at a time."""
        if turn.acquire(blocking=False):
            try:
                return any([server.advance() for server in servers])
            finally:
                turn.release()
        return False
    results = [None] * layout.workers

    def work(worker):
        uplink = sessions.Uplink(worker, Loopback(network, workers[worker], on_wait=serve), ranks, "rank {}".format)
        try:
            results[worker] = spread[worker].work(uplink)
        except BaseException as error:
            results[worker] = error
    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(layout.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in results:
        if isinstance(one, BaseException):
            raise one
    while serve():
        pass
    assert not any(server.active for server in servers)
    return results[spread[0].last_worker], servers
