"""DistributedInfer: the program with which a worker of a job looks at what was trained.

With several processes the tables of embeddings stay on their servers; one process has everything in its scope.
"""

from fleet_mpi.checkpoint.variables import load_persistables
from fleet_mpi.fleet.paddle2 import paddle_fleet
from fleet_mpi.program.program import default_main_program, default_startup_program


class DistributedInfer:
    """Takes the programs of a network built for inference; parameters are found by name in the scope."""

    def __init__(self, main_program=None, startup_program=None):
        self.origin_main_program = main_program or default_main_program()
        self.origin_startup_program = startup_program or default_startup_program()

    def init_distributed_infer_env(self, exe, loss, role_maker=None, dirname=None):
        """Take a role where none was taken, and load saved parameters where a folder is given."""
        if paddle_fleet._role_maker is None:
            paddle_fleet.init(role_maker)
        exe.run(self.origin_startup_program)
        if dirname is not None:
            load_persistables(exe, dirname, self.origin_main_program)

    def get_dist_infer_program(self):
        """The program to run."""
        return self.origin_main_program
