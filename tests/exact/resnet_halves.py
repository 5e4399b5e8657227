"""A small ResNet on two halves of each batch: by two ranks, or by one process that averages as they must.

``python resnet_halves.py ranks`` (under mpirun) trains through every API, ``python resnet_halves.py alone`` in one
process without any; both print the digest of the parameters.
"""

import argparse
import hashlib
import sys

import numpy as np

from fleet_mpi import fluid, paddle
from fleet_mpi.examples import resnet, training
from fleet_mpi.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
from fleet_mpi.program.graph.types import Role

STEPS, HALF, SIZE, SEED = 3, 4, 32, 11
WAYS = (("transpiler", ()), ("fleet", ()), ("fleet2", ()), ("fleet2", ("fuse_grad_size_in_MB=1",)),
        ("fleet2", ("nccl_comm_num=2",)))
UPDATES = Role.Optimize | Role.LRSched


def half(step, number):
    """Half ``number`` of a step's batch."""
    draw = np.random.RandomState(step)
    images = draw.normal(size=(2 * HALF, 3, SIZE, SIZE)).astype("float32")
    labels = draw.randint(resnet.FLOWERS, size=(2 * HALF, 1))
    own = slice(number * HALF, (number + 1) * HALF)
    return {"x": images[own], "y": labels[own]}


def optimizer():
    """As the guide has it, but for a smaller rate."""
    return paddle.optimizer.Momentum(learning_rate=0.02, momentum=0.9, weight_decay=paddle.regularizer.L2Decay(1e-4))


def digest(program, scope):
    """Of all parameters that are trained."""
    names = [param.name for param in program.all_parameters() if param.trainable]
    return hashlib.sha256(b"".join(scope.array(name).tobytes() for name in names)).hexdigest()


def train_among_ranks(api, strategy):
    """One of the ranks, each with its half and with first values of its own, until worker 0's come."""
    job = training.COLLECTIVE_APIS[api](argparse.Namespace(strategy=strategy), PaddleCloudRoleMaker(is_collective=True))
    fluid.default_startup_program().random_seed = SEED + job.worker
    model = resnet.network(18, SIZE)
    job.minimize(optimizer(), model.loss)
    exe = fluid.Executor(fluid.CPUPlace())
    job.start(exe)
    for step in range(STEPS):
        exe.run(job.program, feed=half(step, job.worker), fetch_list=[model.loss])
    return digest(job.program, fluid.global_scope())


def train_alone():
    """Both halves one after the other from the same parameters, gradients averaged in order, then one update."""
    startup, main = fluid.default_startup_program(), fluid.default_main_program()
    startup.random_seed = SEED
    model = resnet.network(18, SIZE)
    _, pairs = optimizer().minimize(model.loss)
    gradients = {param.name: param.name + "@GRAD" for param, _ in pairs}
    forward, update = only(main, lambda op: not op.role & UPDATES), only(main, lambda op: op.role & UPDATES)
    exe, scope, scopes = fluid.Executor(fluid.CPUPlace()), fluid.Scope(), (fluid.Scope(), fluid.Scope())
    exe.run(startup, scope=scope)
    for own in scopes:
        exe.run(startup, scope=own)
        for name in gradients:
            own.var(name).put(scope.array(name))  # the statistics of batch norms stay each half's own
    for step in range(STEPS):
        first, second = ([np.array(one) for one in exe.run(forward, feed=half(step, number), scope=own,
                                                            fetch_list=list(gradients.values()))]
                         for number, own in enumerate(scopes))
        for name, one, other in zip(gradients.values(), first, second):
            scope.var(name).put((one + other) / np.float32(2))
        exe.run(update, scope=scope)
    return digest(main, scope)


def only(program, wanted):
    """A copy with some of the ops."""
    twin = program.clone()
    twin.global_block().ops = [op for op in twin.global_block().ops if wanted(op)]
    twin.touch()
    return twin


def main():
    """Print a digest per way to train."""
    for api, strategy in WAYS if sys.argv[1] == "ranks" else (("alone", ()),):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
                fluid.scope_guard(fluid.Scope()):
            found = train_alone() if api == "alone" else train_among_ranks(api, strategy)
        print("parameters", found, api, *strategy, flush=True)


if __name__ == "__main__":
    main()
