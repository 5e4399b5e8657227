"""A perceptron that tells three rings of points apart; its optimizer runs on parameter servers.

Ends with success when it is right about 9 of 10 points that it never saw. The other half of the line is
``mpirun -np 4 python -m fleet_mpi.examples.torch.mlp --servers 1``: one rank serves, three work.
"""

import argparse
import sys

import torch
from torch import nn

import fleet_mpi.torch as fleet
from fleet_mpi.command_line import CommandLine, whole
from fleet_mpi.examples.torch import data


def main(argv=None, job=None):
    """Train; returns 0 when the model tells the rings apart."""
    options = _options(argv)
    job = job or fleet.join(options.servers)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = fleet.server_optimizer(model.named_parameters(), options.rule, options.learning_rate, mode=options.mode,
                                       job=job)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, max(1, options.steps // 2), 0.3)
    for step in range(options.steps):
        points, ring = data.rings(options.batch_size, data.generator(job.worker, step))
        loss = nn.functional.cross_entropy(model(points), ring)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    points, ring = data.rings(1000, data.generator(-1))
    right = (model(points).argmax(1) == ring).float().mean().item()
    print(f"worker {job.worker} of {job.workers}: loss {loss.item():.3f}, right about {right:.1%} of points it never "
          f"saw")
    return 0 if right > 0.9 else 1


def _options(argv):
    parser = CommandLine(prog="python -m fleet_mpi.examples.torch.mlp", description=__doc__.splitlines()[0],
                         formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--servers", type=int, default=1, help="ranks that serve; 0: the workers update, together")
    parser.add_argument("--steps", type=whole, default=300)
    parser.add_argument("--batch-size", type=whole, default=64)
    parser.add_argument("--rule", default="adam", help="the servers' update rule")
    parser.add_argument("--mode", default="sync", help="when parameters move")
    parser.add_argument("--learning-rate", type=float, default=0.01)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
