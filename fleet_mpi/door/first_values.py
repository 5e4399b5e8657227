"""First values of tables that servers draw themselves, row by row and by counter.

A row depends on seed, table and id alone: so it is the same for any number of servers, with a height and without.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.kernels.reference import random
from fleet_mpi.parameter_server.tables.growing.description import DRAWS, first_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet_mpi.connections.server import Prepare
    from fleet_mpi.parameter_server.server import Server


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
    """The ``prepare`` of ``connections.server`` that fills the tables of these names, which have a height."""
    def prepare(server: Server) -> None:
        for table in server.row_tables:
            for shard in table.shards():
                if shard.variable in inits and shard.size:
                    draw = first_values(inits[shard.variable], key_of(seed, shard.variable))
                    draw(np.arange(shard.row_begin, shard.row_begin + shard.rows),
                         table.param(shard.variable, shard.block))
    return prepare


def key_of(seed: int, name: str) -> int:
    """Of the draws of a table."""
    key: int = random.key_of(seed, "table", name)
    return key
