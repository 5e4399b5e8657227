"""A cell trained by workers without servers, over loopback or MPI: the training, and what a worker keeps in the end."""

from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.runtime import collective_sessions
from fleet_mpi.transpile.collective import Options, plan_of, rewrite
from fleet_mpi.wire.loopback import Network
from tests.exact.cells import built, feed_of
from tests.exact.threads_as_workers import as_workers
from tests.unit.program.building import from_scratch


class Together:
    """A cell, as one worker of the job has it; ``options`` are those of ``Options``."""

    def __init__(self, cell, workers, **options):
        self.cell = cell
        with from_scratch():
            self.made = built(cell)
        main = self.made.main
        self.persistable = {var.name for var in main.list_vars() if var.persistable}
        self.trained = {param.name for param in main.all_parameters() if param.trainable}
        self.plan = plan_of(main, workers, 0, Options(**options))
        rewrite(main, self.made.startup, self.plan)
        self.scope = Scope()

    def work(self, group):
        """Be one worker to the end; returns the state."""
        executor = Executor()
        executor.worker = group.index
        collective_sessions.connect(self.plan, self.scope, group)
        executor.run(self.made.startup, scope=self.scope)
        for step in range(self.cell.steps):
            executor.run(self.made.main, feed=feed_of(self.made.main, group.index, step), fetch_list=[self.made.loss],
                         scope=self.scope)
            if self.made.scheduler is not None:
                self.made.scheduler.step()
        return self.state()

    def state(self):
        """{variable: array} of what a one-process program would keep."""
        found = {name: self.scope.array(name) for name in self.persistable}
        return {name: array for name, array in found.items() if array is not None}

    def parameters(self):
        """The part of the state that must be the same on all workers."""
        return {name: self.scope.array(name) for name in self.trained}


def over_loopback(cell, workers, **options):
    """([Together of each worker], [network of each lane]) after a cell was trained by threads."""
    jobs = [Together(cell, workers, **options) for _ in range(workers)]
    networks = [Network() for _ in range(options.get("comms", 1))]
    as_workers(workers, networks, lambda group: jobs[group.index].work(group))
    return jobs, networks


def ways(number):
    """How the gradients of the cell of this number travel: over the table all ways are met."""
    sizes = ((32, 1), (0, 0), (0.05, 0.01), (0.001, 32))[number % 4]
    return {"fuse_mb": sizes[0], "last_mb": sizes[1], "comms": 1 + number % 3}
