"""From a training program and a config to the Distribution and the worker's programs, changed in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import notices, placement as placing
from fleet_mpi.modes import MODES
from fleet_mpi.transpile.distribution import Distribution
from fleet_mpi.transpile.lookups import replace_lookups
from fleet_mpi.transpile.mode_choice import chosen_mode
from fleet_mpi.transpile.reading import Updates
from fleet_mpi.transpile.trainer import rewrite_main, rewrite_main_for_geo, rewrite_startup

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig


def distribute(program: Program, startup: Program, config: DistributeTranspilerConfig, endpoints: Sequence[str],
               workers: int, worker: int | None = None, sync_mode: bool = True,
               communicator: Any = None) -> tuple[Distribution, Updates]:
    """(Distribution, Updates) of a program; nothing is changed yet."""
    # Imported with the first job: a program that trains alone has no use for it.
    from fleet_mpi.transpile.growing import growing_recipes, growing_tables
    name, options = chosen_mode(config, sync_mode, communicator)
    mode = MODES[name]
    origin = program.clone()
    updates = Updates(origin, startup)
    if not updates.recipes and notices.speaks_for_job():
        notices.once("no updates",
                     "transpile: no update op was found in the program (minimize makes them): the servers have "
                                   "nothing to keep, and nothing is trained")
    fed, dtypes, rate_program = updates.rates()
    growing = growing_tables(origin, updates.recipes)
    recipes = {**updates.recipes, **growing_recipes(growing, updates.recipes, startup)}
    placed = [name for name in recipes if name not in growing]
    by_rows = [name for name in placed if updates.is_by_rows(name) and mode.servers_update]
    found = placing.place([_placed(updates, name) for name in placed], len(endpoints),
                          config.split_method or "RoundRobin", config.slice_var_up, config.min_block_size,
                          program.random_seed)
    dense, rows = found.only(set(placed) - set(by_rows)), found.only(set(by_rows))
    made = Distribution(dense, rows, recipes, updates.gradients, fed, dtypes, rate_program, mode, options,
                        list(endpoints), workers, worker, startup.clone(), origin, growing=growing)
    return made, updates


def rewrite(program: Program, startup: Program, distribution: Distribution, connects_at_start: bool = True) -> None:
    """Make a program and its startup program a worker's.

    With ``connects_at_start`` the startup program ends with the servers' values (1.x); without, the worker's own
    values count until it is connected (2.x).
    """
    own = Updates(program, startup)
    if distribution.keeps_states:
        own.rates()
        rewrite_main(program, distribution, own.moved)
    else:
        rewrite_main_for_geo(program, distribution, {op for name in distribution.growing for op in own.ops_of(name)})
    if distribution.tables:
        replace_lookups(program, distribution.tables)
    rewrite_startup(startup, distribution, connects=connects_at_start)


def _placed(updates, name):
    var = updates.block._var_recursive(name)
    return placing.Variable(name, tuple(var.shape), np.dtype(var._dtype).name)
