"""The peer: the same models as PyTorch's eager loop, on its default device. Benchmark-only, never a dependency.

Each function returns a step; calling it trains on one batch and returns its loss.
"""

import itertools

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks import inputs


def set_threads(count):
    """Let PyTorch use this many threads."""
    torch.set_num_threads(count)


def fit_a_line(batch, rate=0.001):
    """Linear regression with mean squared error and SGD."""
    batches, values = inputs.fit_a_line(batch)
    model = linear(values["w"], values["b"])
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    return _stepper(batches, model, F.mse_loss, optimizer)


def wide_and_deep(batch, rate=0.1, table=inputs.TABLE):
    """The present wide_and_deep, all slots in one lookup with sparse gradients (PyTorch's quickest form)."""
    batches, values = inputs.wide_and_deep(batch, table)
    model = _WideAndDeep(values)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    batches = [((dense, ids), label.astype("float32")) for dense, ids, label in batches]
    return _stepper(batches, model, _log_loss, optimizer)


def resnet(batch, layers, size, rate=0.1):
    """A ResNet with momentum and weight decay."""
    batches, values = inputs.resnet(batch, layers, size)
    model = _ResNet(layers, size, values)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
    batches = [(images, label[:, 0]) for images, label in batches]
    return _stepper(batches, model, F.cross_entropy, optimizer)


def _stepper(batches, model, loss_of, optimizer):
    turn = itertools.cycle([(_tensor(x), _tensor(y)) for x, y in batches])

    def step():
        x, y = next(turn)
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def _tensor(value):
    if isinstance(value, tuple):
        return tuple(map(_tensor, value))
    return torch.from_numpy(value).to(torch.get_default_device())


def linear(weight, bias):
    """A layer with these values."""
    made = nn.Linear(*weight.shape)
    with torch.no_grad():
        made.weight.copy_(torch.from_numpy(weight).T)
        made.bias.copy_(torch.from_numpy(bias))
    return made


def _log_loss(p, y):
    return -(y * torch.log(p + 1e-4) + (1 - y) * torch.log(1 - p + 1e-4)).mean()


class _WideAndDeep(nn.Module):
    def __init__(self, values):
        super().__init__()
        self.table = nn.Embedding.from_pretrained(torch.from_numpy(values["table"]), freeze=False, sparse=True)
        self.wide = linear(values["wide_w"], values["wide_b"])
        deep = [linear(values[f"w{i}"], values[f"b{i}"]) for i in range(4)]
        self.deep = nn.Sequential(deep[0], nn.ReLU(), deep[1], nn.ReLU(), deep[2], nn.ReLU(), deep[3])

    def forward(self, x):
        dense, ids = x
        joined = torch.cat([self.table(ids).flatten(1), dense], 1)
        return torch.sigmoid(self.wide(dense) + self.deep(joined))


class _Unit(nn.Module):
    """Convolution and batch norm."""

    def __init__(self, conv, values):
        super().__init__()
        self.conv = nn.Conv2d(conv.inputs, conv.outputs, conv.kernel, conv.stride, (conv.kernel - 1) // 2, bias=False)
        self.norm = nn.BatchNorm2d(conv.outputs)
        with torch.no_grad():
            self.conv.weight.copy_(torch.from_numpy(values[conv.name + "_weights"]))

    def forward(self, x):
        return self.norm(self.conv(x))


class _Block(nn.Module):
    """Two or three units, added to the shortcut."""

    def __init__(self, convs, values):
        super().__init__()
        self.shortcut = nn.Identity()
        if convs[0].name.endswith("branch1"):
            self.shortcut = _Unit(convs.pop(0), values)
        self.units = nn.ModuleList(_Unit(conv, values) for conv in convs)

    def forward(self, x):
        shortcut = self.shortcut(x)
        for unit in self.units[:-1]:
            x = F.relu(unit(x), inplace=True)
        return F.relu(self.units[-1](x).add_(shortcut), inplace=True)


class _ResNet(nn.Module):
    def __init__(self, layers, size, values):
        super().__init__()
        first, *rest = inputs.convolutions(layers, size)
        self.first = _Unit(first, values)
        named = itertools.groupby(rest, lambda conv: conv.name.partition("_")[0])
        self.blocks = nn.Sequential(*(_Block(list(convs), values) for _, convs in named))
        self.last = linear(values["fc_0.w_0"], values["fc_0.b_0"])

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.first(x), inplace=True), 3, 2, 1)
        return self.last(self.blocks(x).mean((2, 3)))
