"""What the clients and servers of a job must agree on: plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fleet_mpi.parameter_server.tables.dense import DenseDescription

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet_mpi.parameter_server.recipes import Recipe
    from fleet_mpi.parameter_server.tables.base import Described, DescribedByRows
    from fleet_mpi.placement.placing import Placement

LoadedFrom: TypeAlias = list[Any]   # [folder, files] that values come from: a list, as it travels


class Description(NamedTuple):
    """The tables of a job, and the learning rates that their updates take."""

    placement: Placement                             # of the dense variables
    recipes: Mapping[str, Recipe]                    # {variable: Recipe}
    rates: tuple[str, ...] = ()                      # the learning rates that workers set, by name
    row_tables: tuple[DescribedByRows, ...] = ()     # those that are asked for rows
    rate_dtypes: Mapping[str, Any] = {}              # {name: dtype} of the rates that are not float32
    keeps_states: bool = True    # False: optimizers and rates are the workers' (geo), servers only have parameters

    @property
    def dense(self) -> DenseDescription:
        """The table of all dense variables."""
        return DenseDescription(self.placement, self.recipes)

    @property
    def tables(self) -> tuple[Described, ...]:
        """All tables: the dense one, then those that are asked for rows."""
        return self.dense, *self.row_tables
