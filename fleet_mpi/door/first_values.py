"""First values of tables that servers draw themselves, by counter: the same for any number of servers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.kernels.reference import random

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet_mpi.connections.server import Prepare
    from fleet_mpi.parameter_server.server import Server

DRAWS = {"uniform": random.uniform, "normal": random.normal}


def checked(init: Any, what: str) -> tuple[Any, ...]:
    """A number, or ("uniform", low, high) or ("normal", mean, std), as plain data; empty for zeros."""
    if isinstance(init, (int, float)) and math.isfinite(init):
        return ("constant", float(init)) if init else ()
    if isinstance(init, (tuple, list)) and len(init) == 3 and init[0] in DRAWS and all(
            isinstance(one, (int, float)) and math.isfinite(one) for one in init[1:]):
        kind, first, second = init[0], float(init[1]), float(init[2])
        if (first < second) if kind == "uniform" else second >= 0:
            return kind, first, second
    raise UsageError(f"{what}: expected a number, an array, (\"uniform\", low, high) with low < high, or (\"normal\", "
                     f"mean, std), got {init!r}")


def drawn(inits: Mapping[str, tuple[Any, ...]], seed: int) -> Prepare:
    """The ``prepare`` of ``connections.server`` that fills the tables of these names."""
    def prepare(server: Server) -> None:
        for table in server.row_tables:
            for shard in table.shards():
                init = inits.get(shard.variable)
                if init and shard.size:
                    _fill(table.param(shard.variable, shard.block), init, seed, shard.variable, shard.offset)
    return prepare


def _fill(rows: np.ndarray, init: tuple[Any, ...], seed: int, name: str, offset: int) -> None:
    kind, *numbers = init
    if kind == "constant":
        rows[...] = numbers[0]
    else:
        DRAWS[kind](rows.reshape(-1), random.key_of(seed, "table", name), 0, offset, *numbers)
