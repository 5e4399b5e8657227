"""Synthetic data that can be learnt: every worker and step draws a batch of its own, by seed."""

import torch


def generator(*numbers):
    """A generator for this worker, step and so on."""
    seed = 0
    for number in numbers:
        seed = seed * 100_003 + number + 1
    return torch.Generator().manual_seed(seed)


def rings(size, draw):
    """(points [size, 2], which of three rings they are on)."""
    ring = torch.randint(0, 3, (size,), generator=draw)
    angle = 6.2832 * torch.rand(size, generator=draw)
    radius = ring + 1 + 0.2 * torch.randn(size, generator=draw)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), ring


def images(size, draw, classes=10, side=32):
    """(images [size, 3, side, side], classes): stripes whose direction is the class, in noise."""
    label = torch.randint(0, classes, (size,), generator=draw)
    angle = (3.1416 * label / classes)[:, None, None]
    row, column = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    stripes = torch.sin(0.8 * (row * angle.cos() + column * angle.sin()))
    return stripes[:, None] + 0.5 * torch.randn(size, 3, side, side, generator=draw), label


def clicks(size, draw, slots, height):
    """(ids [size, slots], numbers [size, 4], clicked): each id has a hidden weight, which its last digits tell."""
    ids = (torch.rand(size, slots, generator=draw) ** 3 * height).long()   # few ids are frequent, most are rare
    numbers = torch.rand(size, 4, generator=draw)
    liking = ((ids % 7) - 3).float().sum(1) / slots ** 0.5 + numbers.sum(1) - 2
    return ids, numbers, (torch.rand(size, generator=draw) < torch.sigmoid(liking)).float()
