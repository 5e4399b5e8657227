"""A training of many slow steps that can be stopped and resumed; worker 0 prints what the model is in the end.

Every batch follows from the worker's number and the step, so a training that was stopped must end with the same
bits as one that was not. ``--collective``: without servers.
"""

import argparse
import faulthandler
import hashlib
import sys
import time
from pathlib import Path

import numpy as np

from fleet_mpi import fluid, paddle
from fleet_mpi.fleet import preemption
from fleet_mpi.fleet.preemption import Preemption
from fleet_mpi.paddle.distributed import fleet


def main():
    """Train, or serve."""
    options = parse()
    if options.stacks_after:
        faulthandler.dump_traceback_later(options.stacks_after)
    preemption.watch()
    paddle.enable_static()
    fleet.init(is_collective=options.collective)
    x = paddle.static.data(name="x", shape=[None, options.width], dtype="float32")
    y = paddle.static.data(name="y", shape=[None, 1], dtype="float32")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, size=1), y))
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = False
    fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=0.01), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(fluid.default_startup_program())
    if not options.collective:
        fleet.init_worker()
    train(exe, loss, options)


def train(exe, loss, options):
    """All steps that are left, or those up to the signal."""
    program = fluid.default_main_program()

    def save(path):
        fleet.save_persistables(exe, path, program)

    with Preemption(options.model_dir, save, lambda path: fluid.io.load_persistables(exe, path, program)) as keeping:
        first = keeping.resume()
        say(f"worker {fleet.worker_index()} begins at step {first}")
        for step in range(first, options.steps):
            drawn = np.random.default_rng([fleet.worker_index(), step]).normal(size=(8, options.width + 1))
            exe.run(program, feed={"x": drawn[:, 1:], "y": drawn[:, :1]}, fetch_list=[loss])
            time.sleep(0 if first else options.pause)
            if keeping.stopping(step + 1):
                say(f"worker {fleet.worker_index()} stops after step {step + 1}")
                break
    if keeping.stopped_after is None and fleet.worker_index() == 0:
        save(options.result_dir)
        say(f"model {digest(options.result_dir)}")
    if not options.collective:
        fleet.stop_worker()
    keeping.leave_if_stopped()


def say(text):
    """One line in one go: ranks share the output, and ``print`` may write a line's parts one by one."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def digest(folder):
    """One number for all files of a folder but the manifest, in which saves have numbers."""
    content = b"".join(path.name.encode() + path.read_bytes() for path in sorted(Path(folder).glob("[!.]*")))
    return hashlib.sha256(content).hexdigest()


def parse():
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--width", type=int, default=4, help="parameters, but for the bias")
    parser.add_argument("--stacks-after", type=float, default=0,
                        help="seconds; where every thread is then goes to stderr")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between steps, unless resumed")
    parser.add_argument("--model-dir", required=True)
    parser.add_argument("--result-dir", required=True)
    parser.add_argument("--collective", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
