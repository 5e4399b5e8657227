"""What every rank runs: ``python script.py WAY MODEL OPTIMIZER STEPS METHOD``. WAY is alone, servers or collective.

The first worker saves every few steps and prints a line per variable: the step, its name, the SHA-256 of its file.
"""

import hashlib
import os
import sys
import tempfile

import models

import fleet_mpi.paddle as paddle
from fleet_mpi import fluid
from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet as served
from fleet_mpi.paddle.distributed import fleet as equals

_EVERY = 2


def train(program, loss, worker, steps, save):
    """This worker's steps; ``save(folder)`` writes the whole state."""
    exe = fluid.Executor()
    for step in range(steps):
        exe.run(program, feed=models.batch(program, worker, step), fetch_list=[loss])
        if worker == 0 and (step + 1) % _EVERY == 0:
            tell(step + 1, lambda folder: save(exe, folder))


def tell(step, save):
    """Print the digest of every variable of the state, as far as it is saved: what optimizers keep, too."""
    with tempfile.TemporaryDirectory() as folder:
        save(folder)
        for name in sorted(name for name in os.listdir(folder) if not name.startswith((".", "fleet_mpi"))):
            with open(os.path.join(folder, name), "rb") as file:
                sys.stdout.write(f"golden {step} {name} {hashlib.sha256(file.read()).hexdigest()}\n")


def alone(loss, rule, steps, _):
    """One process."""
    rule.minimize(loss)
    fluid.Executor().run(fluid.default_startup_program())
    train(fluid.default_main_program(), loss, 0, steps, fluid.io.save_persistables)


def with_servers(loss, rule, steps, method):
    """Synchronous, over FLEET_MPI_SERVERS servers."""
    config = fluid.DistributeTranspilerConfig()
    config.split_method = getattr(fluid.transpiler.ps_dispatcher, method)
    served.distributed_optimizer(rule, config).minimize(loss)
    whole = fluid.default_main_program()
    if served.is_server():
        served.init_server()
        served.run_server()
        return
    served.init_worker()
    fluid.Executor().run(served.startup_program)
    train(served.main_program, loss, served.worker_index(), steps,
          lambda exe, folder: served.save_persistables(exe, folder, whole))
    served.stop_worker()


def collective(loss, rule, steps, _):
    """All ranks are equal."""
    equals.distributed_optimizer(rule, equals.DistributedStrategy()).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    train(fluid.default_main_program(), loss, equals.worker_index(), steps, fluid.io.save_persistables)


def main(way, model, rule, steps, method):
    """Build and train."""
    paddle.enable_static()
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 5
    if way == "servers":
        served.init()
    elif way == "collective":
        equals.init(is_collective=True)
    loss, made = getattr(models, model)(), getattr(models, rule)()
    {"alone": alone, "servers": with_servers, "collective": collective}[way](loss, made, int(steps), method)


if __name__ == "__main__":
    main(*sys.argv[1:])
