"""DistributedInfer: the program with which a worker of a job looks at what was trained.

With servers the tables of embeddings stay with them, and the program pulls the rows of its batch; one process has
everything in its scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.checkpoint.loading import load_persistables
from fleet_mpi.fleet.paddle2 import paddle_fleet
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.optimizers.plain import SGD
from fleet_mpi.runtime import sessions
from fleet_mpi.transpile.lookups import replace_lookups

if TYPE_CHECKING:
    from fleet_mpi.fleet.roles import RoleMaker
    from fleet_mpi.program.engine.executor import Executor
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.program.graph.variable import Variable


class DistributedInfer:
    """Takes the programs of a network built for inference; parameters are found by name in the scope."""

    def __init__(self, main_program: Program | None = None, startup_program: Program | None = None) -> None:
        self.origin_main_program = main_program or default_main_program()
        self.origin_startup_program = startup_program or default_startup_program()
        self._program = self.origin_main_program

    def init_distributed_infer_env(self, exe: Executor, loss: Variable, role_maker: RoleMaker | None = None,
                                   dirname: str | None = None) -> None:
        """Get ready, where no training has done so: take a role, start the servers, load what is in a folder.

        A server comes back from here when all workers have left.
        """
        if paddle_fleet._optimizer is None:
            self._start(exe, loss, role_maker, dirname)
        elif dirname is not None:
            load_persistables(exe, dirname, paddle_fleet.main_program)

    def get_dist_infer_program(self) -> Program:
        """The program to run in the global scope, once that is connected to the servers: while a worker trains, or
        after ``init_distributed_infer_env``."""
        session = sessions.session_of(global_scope())
        tables = [] if session is None else session.distribution.tables
        if not tables:
            return self._program
        program = self._program.clone()
        replace_lookups(program, tables)
        return program

    def _start(self, exe: Executor, loss: Variable, role_maker: RoleMaker | None, dirname: str | None) -> None:
        if paddle_fleet._role_maker is None:
            paddle_fleet.init(role_maker)
        if paddle_fleet.is_alone():
            exe.run(self.origin_startup_program)
            if dirname is not None:
                load_persistables(exe, dirname, self.origin_main_program)
            return
        # What is on servers follows from how it is trained; nothing will be.
        self._program = self.origin_main_program.clone(for_test=True)
        paddle_fleet.distributed_optimizer(SGD(0.0)).minimize(loss, self.origin_startup_program)
        if paddle_fleet.is_server():
            paddle_fleet.init_server(dirname)
            paddle_fleet.run_server()
        else:
            exe.run(self.origin_startup_program)
            paddle_fleet.init_worker()
