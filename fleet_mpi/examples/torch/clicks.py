"""Click prediction: embeddings whose rows live on parameter servers, and a perceptron whose optimizer runs there too.

Ends with success when it ranks clicks it never saw clearly better than by chance (AUC above 0.6). Under mpirun one rank
serves unless ``--servers`` says more: ``mpirun -np 3 python -m fleet_mpi.examples.torch.clicks``.
"""

import argparse
import sys

import torch
from torch import nn

import fleet_mpi.torch as fleet
from fleet_mpi.command_line import CommandLine, whole
from fleet_mpi.examples.torch import data


class Model(nn.Module):
    """One table for all slots, and a perceptron over its rows and some numbers."""

    def __init__(self, slots, dim, height, job=None):
        super().__init__()
        self.rows = fleet.Embedding("slots", dim, height, rule="adagrad", lr=0.1, job=job)
        self.deep = nn.Sequential(nn.Linear(slots * dim + 4, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, ids, numbers):
        """How likely a click is, before the sigmoid."""
        return self.deep(torch.cat([self.rows(ids).flatten(1), numbers], 1)).squeeze(1)


def auc(score, clicked):
    """How often a click is ranked above none."""
    rank = score.argsort().argsort().double() + 1
    clicks = clicked.sum().double()
    others = len(clicked) - clicks
    return float((rank[clicked > 0].sum() - clicks * (clicks + 1) / 2) / (clicks * others))


def main(argv=None, job=None):
    """Train; returns 0 when clicks are ranked better than by chance."""
    options = _options(argv)
    job = job or fleet.join(options.servers)
    model = Model(options.slots, options.dim, options.height, job)
    optimizer = fleet.server_optimizer(model.named_parameters(), "adam", 0.01, mode=options.mode, job=job)
    for step in range(options.steps):
        ids, numbers, clicked = data.clicks(options.batch_size, data.generator(job.worker, step), options.slots,
                                            options.height)
        loss = nn.functional.binary_cross_entropy_with_logits(model(ids, numbers), clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        ids, numbers, clicked = data.clicks(5000, data.generator(-1), options.slots, options.height)
        found = auc(model(ids, numbers), clicked)
    print(f"worker {job.worker} of {job.workers}: loss {loss.item():.3f}, AUC {found:.3f} on clicks it never saw")
    return 0 if found > 0.6 else 1


def _options(argv):
    parser = CommandLine(prog="python -m fleet_mpi.examples.torch.clicks", description=__doc__.splitlines()[0],
                         formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--servers", type=int, default=1, help="ranks that serve")
    parser.add_argument("--steps", type=whole, default=200)
    parser.add_argument("--batch-size", type=whole, default=256)
    parser.add_argument("--slots", type=whole, default=26, help="ids of a sample")
    parser.add_argument("--dim", type=whole, default=16, help="numbers of a row")
    parser.add_argument("--height", type=whole, default=10_000, help="rows of the table")
    parser.add_argument("--mode", default="sync", help="when parameters move")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
