"""fleet_mpi: train models with parameter servers or collectives, over MPI.

Five questions, five folders: ``program`` says what is computed, ``placement`` where each row
lives, ``wire`` how bytes move, ``parameter_server`` who keeps them, ``modes`` when they move.
Where they meet: ``transpile`` makes each role's programs; ``connections`` is a process's part in a job, over plain
arrays; ``runtime`` binds scopes to connections and has the ops that send; ``ranks`` says who is there and whether it
lives.
The names that scripts know are in ``fleet_mpi.fluid`` (1.x) and ``fleet_mpi.paddle`` (2.x);
``python -m fleet_mpi train.py`` runs a script written for ``paddle`` with those names.

Importing this package starts nothing: no MPI, no thread, no compilation.
"""

__version__ = "0.1.0"
