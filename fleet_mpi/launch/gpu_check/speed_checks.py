"""How fast copies, a product and a training step are here, beside what plain cupy reaches for the same.

Times are of the host's clock around work that was waited for, the median of several; the first ones compile.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi import fluid
from fleet_mpi.arrays import pinned_like, to_host
from fleet_mpi.launch.gpu_check.findings import OK, Finding
from fleet_mpi.parameter_server.flat import FlatLayout
from fleet_mpi.placement.shard import Variable
from fleet_mpi.program.engine.places import CUDAPlace
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.models.resnet import resnet18
from fleet_mpi.runtime.device_copies import DeviceFlat, Downloads

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from fleet_mpi.program.engine.places import Place

RESNET18_MACS = 1.82e9  # of a forward pass over 224x224 pixels; backward takes two times as many


class Sizes(NamedTuple):
    """Megabytes that are copied, width of the product, batch and pixels of ResNet-18, calls before and while measuring.
    """

    megabytes: int
    width: int
    batch: int
    pixels: int
    first: int
    repeats: int


QUICK, FULL = Sizes(4, 128, 2, 32, 1, 1), Sizes(256, 4096, 32, 224, 3, 7)


def check(device: int | None, quick: bool) -> list[Finding]:
    """All measurements."""
    return measured(CUDAPlace(device), QUICK if quick else FULL)


def measured(place: Place, sizes: Sizes) -> list[Finding]:
    """Copies, product and step on a place."""
    xp = place.array_module()
    product = _product(place, xp, sizes)
    return [*_copies(xp, sizes), product, _step(place, xp, sizes, product.numbers["cupy_tflops"])]


def _copies(xp: ModuleType, sizes: Sizes) -> list[Finding]:
    """Gigabytes a second of plain cupy to and from pinned memory, and of a worker's exchange with servers."""
    nbytes = sizes.megabytes << 20
    array = xp.zeros(nbytes, "uint8")
    host, other, stream = pinned_like(array), xp.zeros(nbytes, "uint8"), xp.cuda.get_current_stream()
    flat = DeviceFlat(FlatLayout([Variable("all", (nbytes,), "uint8")]), Downloads(xp))
    ways: dict[str, Callable[[], object]] = {
        "device to device": lambda: xp.copyto(other, array),
        "to pinned memory": lambda: array.data.copy_to_host_async(host.ctypes.data, nbytes, stream),
        "from pinned memory": lambda: array.data.copy_from_host_async(host.ctypes.data, nbytes, stream),
        "gradients to servers": flat.gather, "parameters from servers": flat.spread}
    return [_rate(name, run, xp, nbytes, sizes) for name, run in ways.items()]


def _rate(name: str, run: Callable[[], object], xp: ModuleType, nbytes: int, sizes: Sizes) -> Finding:
    rate = nbytes / _seconds(run, xp, sizes) / 1e9
    return Finding(f"copy, {name}", OK, f"{rate:.2f} GB/s ({nbytes >> 20} MiB)", numbers={"gb_per_s": rate})


def _product(place: Place, xp: ModuleType, sizes: Sizes) -> Finding:
    """A square float32 product by an op of a program, and by cupy alone."""
    shape = [sizes.width, sizes.width]
    main, startup, scope = fluid.Program(), fluid.Program(), Scope()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        left, right = (fluid.layers.create_parameter(shape, "float32", name=name) for name in ("left", "right"))
        out = fluid.layers.reduce_sum(fluid.layers.matmul(left, right))
    executor = fluid.Executor(place)
    executor.run(startup, scope=scope)
    ours = _seconds(lambda: executor.run(main, fetch_list=[out], scope=scope), xp, sizes)
    a, b = scope.array("left"), scope.array("right")
    plain = _seconds(lambda: to_host(xp.matmul(a, b).sum()), xp, sizes)
    work = 2e-12 * sizes.width ** 3
    return Finding("product", OK, f"{work / ours:.3g} TFLOP/s in a program, {work / plain:.3g} by cupy alone "
                   f"({sizes.width} x {sizes.width}, float32)",
                   numbers={"tflops": work / ours, "cupy_tflops": work / plain})


def _step(place: Place, xp: ModuleType, sizes: Sizes, cupy_tflops: float) -> Finding:
    """A training step of ResNet-18, and what its products alone would take at the speed of cupy's."""
    main, startup, scope = fluid.Program(), fluid.Program(), Scope()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        images = fluid.data("images", [None, 3, sizes.pixels, sizes.pixels])
        labels = fluid.data("labels", [None, 1], "int64")
        logits = resnet18(num_classes=1000)(images)
        loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, labels))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    executor = fluid.Executor(place)
    executor.run(startup, scope=scope)
    rng = np.random.default_rng(0)
    feed = {"images": rng.normal(size=(sizes.batch, 3, sizes.pixels, sizes.pixels)).astype("float32"),
            "labels": rng.integers(0, 1000, (sizes.batch, 1))}
    taken = _seconds(lambda: executor.run(main, feed=feed, fetch_list=[loss], scope=scope), xp, sizes)
    floor = 6e-12 * RESNET18_MACS * (sizes.pixels / 224) ** 2 * sizes.batch / cupy_tflops
    return Finding("ResNet-18 step", OK, f"{1e3 * taken:.1f} ms, {sizes.batch / taken:.3g} images/s (batch "
                   f"{sizes.batch}, {sizes.pixels} pixels, float32); its products alone take {1e3 * floor:.1f} ms at "
                   f"the speed of cupy's", numbers={"ms": 1e3 * taken, "floor_ms": 1e3 * floor})


def _seconds(run: Callable[[], object], xp: ModuleType, sizes: Sizes) -> float:
    """The median time of a call whose work is waited for."""
    stream = xp.cuda.get_current_stream()
    taken = []
    for _ in range(sizes.first + sizes.repeats):
        begun = time.perf_counter()
        run()
        stream.synchronize()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[sizes.first:])
