"""A small program with tables that grow, trained in one process or with servers within it: for tests."""

import numpy as np

from fleet_mpi import fluid
from fleet_mpi.checkpoint import loading, saving
from fleet_mpi.checkpoint.sources import Source
from fleet_mpi.checkpoint.values import BlockValues
from fleet_mpi.kernels.reference import slots
from fleet_mpi.parameter_server.description import StateKey, param
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.parameter_server.tables.base import KEYS
from fleet_mpi.program.engine.scope import Scope, scope_guard
from fleet_mpi.runtime import sessions
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig
from fleet_mpi.transpile.distributing import distribute, rewrite
from tests.unit.program.building import from_scratch

FAR = 10 ** 10
WIDTH = 5


def batch(step):
    """Ids of both signs beyond 32 bits, of which some repeat."""
    rng = np.random.default_rng(step)
    return {**{f"slot{i}": rng.integers(-10, 10, (8, 1)) * FAR + i for i in range(3)},
            "target": rng.normal(size=(8, 1)).astype("float32")}


class GrowingJob:
    """Three lookups in two tables, ``shared`` and ``own``; ``servers`` None: one process has them itself."""

    def __init__(self, servers=None, optimizer=lambda: fluid.optimizer.SGD(0.5), initializer=None, entry=None,
                 padding_idx=None, load=None, first=None, **config):
        with from_scratch() as (main, startup):
            main.random_seed = startup.random_seed = 3
            ids = [fluid.layers.data(f"slot{i}", [1], dtype="int64") for i in range(3)]
            rows = [fluid.contrib.layers.sparse_embedding(
                one, [10, WIDTH], padding_idx, entry=entry, param_attr=fluid.ParamAttr(
                    name="own" if i == 2 else "shared", initializer=initializer)) for i, one in enumerate(ids)]
            guess = fluid.layers.fc(fluid.layers.concat(rows, axis=1), 1)
            self.loss = fluid.layers.mean(fluid.layers.square_error_cost(guess, fluid.layers.data("target", [1])))
            self.guess, self.test = guess, main.clone(for_test=True)
            optimizer().minimize(self.loss)
            self.origin = main.clone()
            self.main, self.startup, self.scope, self.exe = main, startup, Scope(), fluid.Executor()
            if servers is not None:
                self._spread(servers, config, load)
            self.exe.run(startup, scope=self.scope)
            if servers is None and load is not None:
                with scope_guard(self.scope):
                    loading.load_persistables(None, str(load), self.origin)

    def _spread(self, servers, config, load):
        chosen = DistributeTranspilerConfig()
        for name, value in config.items():
            setattr(chosen, name, value)
        self.distribution, self.updates = distribute(self.main, self.startup, chosen,
                                                     [f"h:{n}" for n in range(servers)], 1)
        rewrite(self.main, self.startup, self.distribution)
        if load is not None:
            scopes = [sessions.started_scope(self.distribution, index) for index in range(servers)]
            for index, scope in enumerate(scopes):
                BlockValues(self.distribution, index, scope).load(Source(str(load)))
            sessions.connect(self.distribution, self.scope, sessions.embedded(self.distribution, scopes))

    def run(self, *steps):
        """The losses of some steps, as bits."""
        return [self.exe.run(self.main, batch(step), [self.loss], scope=self.scope)[0].tobytes() for step in steps]

    @property
    def state(self):
        """What the servers keep."""
        return ServerState(sessions.session_of(self.scope).client)

    def save(self, folder, filename=None):
        """As a worker, or as one process."""
        with scope_guard(self.scope):
            saving.save_persistables(None, str(folder), self.main, filename)
        return folder

    def load(self, folder, filename=None):
        """The same into what is running."""
        with scope_guard(self.scope):
            loading.load_persistables(None, str(folder), self.main, filename)
        return self

    def rows(self, table="shared"):
        """{id: bytes of its row} of all that is stored."""
        if sessions.session_of(self.scope) is not None:
            ids, values = self.state.fetch(StateKey("state", table, KEYS)), self.state.fetch(param(table))
        else:
            count = slots.used(self.scope.array(table + "@INDEX"))
            ids, values = (self.scope.array(name)[:count] for name in (table + KEYS, table))
        return {number: row.tobytes() for number, row in sorted(zip(ids.tolist(), values))}
