"""ResNet-18 on small images: equal workers, whose gradients are averaged while the backward pass runs.

Ends with success when the loss of a step is below half of the first one's. Under mpirun all ranks work, as in
``mpirun -np 2 python -m fleet_mpi.examples.torch.resnet18``; ``--ddp`` takes stock DistributedDataParallel instead.
"""

import argparse
import sys

import torch
from torch import nn

import fleet_mpi.torch as fleet
from fleet_mpi.command_line import CommandLine, whole
from fleet_mpi.examples.torch import data


class Block(nn.Module):
    """Two convolutions, and the input beside them."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.first, self.second = _convolution(channels, out, 3, stride), _convolution(out, out, 3)
        self.beside = _convolution(channels, out, 1, stride) if stride > 1 or channels != out else nn.Identity()

    def forward(self, x):
        """What is added to the input."""
        return torch.relu(self.second(torch.relu(self.first(x))) + self.beside(x))


def _convolution(channels, out, size, stride=1):
    return nn.Sequential(nn.Conv2d(channels, out, size, stride, size // 2, bias=False), nn.BatchNorm2d(out))


def resnet18(classes=10, width=64):
    """The network for small images: no pooling before the blocks. ``width``: the channels of the first ones."""
    layers, channels = [_convolution(3, width, 3), nn.ReLU()], width
    for stage in range(4):
        for number in range(2):
            out = width << stage
            layers.append(Block(channels, out, 2 if stage and not number else 1))
            channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def main(argv=None, job=None):
    """Train; returns 0 when the loss has halved."""
    options = _options(argv)
    job = job or fleet.join(servers=0)
    torch.manual_seed(1)
    model = resnet18(width=options.width)
    if options.ddp:
        model = nn.parallel.DistributedDataParallel(model, process_group=fleet.process_group(job=job))
    else:
        model = fleet.parallel(model, how=options.how, job=job)
    optimizer = torch.optim.SGD(model.parameters(), options.learning_rate, momentum=0.9)
    first = loss = None
    for step in range(options.steps):
        images, label = data.images(options.batch_size, data.generator(job.worker, step), side=options.side)
        loss = nn.functional.cross_entropy(model(images), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        first = first or loss.item()
    print(f"worker {job.worker} of {job.workers}: loss {first:.3f} at first, {loss.item():.3f} after {step + 1} steps")
    return 0 if loss.item() < first / 2 else 1


def _options(argv):
    parser = CommandLine(prog="python -m fleet_mpi.examples.torch.resnet18", description=__doc__.splitlines()[0],
                         formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--steps", type=whole, default=30)
    parser.add_argument("--batch-size", type=whole, default=32, help="images of each worker")
    parser.add_argument("--width", type=whole, default=64, help="channels of the first blocks; fewer are quicker")
    parser.add_argument("--side", type=whole, default=32, help="of the images, in pixels")
    parser.add_argument("--learning-rate", type=float, default=0.02)
    parser.add_argument("--how", choices=("exact", "fast"), help="in worker order, or as the MPI library likes")
    parser.add_argument("--ddp", action="store_true", help="by stock DistributedDataParallel over our process group")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
