"""How long does a ResNet-50 training step take on a GPU, beside PyTorch's on the same one?

``python -m benchmarks.gpu_step [--quick] [--batch 32] [--json]``
Ours is float32 and fed from the host; PyTorch's batches are on the device already. It is measured twice, with TF32
as it comes and without; where it is not installed, or sees no GPU, that is said. Code 3 where we see none.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import time

from benchmarks import host
from fleet_mpi import paddle
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.program.engine.places import why_no_gpu

FIRST, REPEATS = 5, 20


def main(argv=None):
    """Print a line for each contender; returns the exit code."""
    options = _options(argv)
    problem = why_no_gpu()
    if problem:
        sys.stderr.write(f"gpu_step: {problem}\n")
        return EnvironmentProblem.exit_code
    layers, size, batch = (18, 32, 2) if options.quick else (50, 224, options.batch)
    rounds = (1, 2) if options.quick else (FIRST, REPEATS)
    print(f"ResNet-{layers}, batch {batch}, {size}x{size}")
    taken = {"fleet_mpi, float32": _milliseconds(_ours(batch, layers, size), *rounds)}
    for name, allows_tf32 in (("PyTorch, TF32", True), ("PyTorch, float32", False)):
        taken[name] = _milliseconds(_torch(batch, layers, size, allows_tf32), *rounds)
    for name, milliseconds in taken.items():
        print(f"{name:20}", "not installed, or without a GPU" if milliseconds is None else
              f"{statistics.median(milliseconds):9.1f} ms a step ({min(milliseconds):.1f} to {max(milliseconds):.1f})")
    if options.json:
        print(json.dumps({**host.facts(), "layers": layers, "batch": batch, "size": size, "milliseconds": taken}))
    return 0


def _ours(batch, layers, size):
    from benchmarks import ours

    paddle.set_device("gpu")
    return ours.resnet(batch, layers, size)


def _torch(batch, layers, size, allows_tf32):
    """A step of PyTorch's; None where it has no GPU."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    from benchmarks import torch_peer

    torch.set_default_device("cuda")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allows_tf32
    return torch_peer.resnet(batch, layers, size)


def _milliseconds(step, first, repeats):
    """The time of each step, after some that compile; a step ends when its loss is on the host."""
    if step is None:
        return None
    taken = []
    for _ in range(first + repeats):
        begun = time.perf_counter()
        step()
        taken.append(1e3 * (time.perf_counter() - begun))
    return taken[first:]


def _options(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small model: for breakage, not for numbers")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--json", action="store_true", help="add a line of JSON")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
