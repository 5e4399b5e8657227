"""What a server keeps, by kinds of tables.

    base      the seam: what others know of a table
    dense     variables that travel whole, all of a job in one table: flat images, updated piece by piece
    rows      a table of fixed height that travels by rows
    growing/  a table that grows: rows for any id

A new kind is one file and its line in ``TABLES``.
"""

from collections.abc import Callable
from typing import Any

from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.parameter_server.tables import rows
from fleet_mpi.parameter_server.tables.base import DescribedByRows


def _growing(*fields: Any, **named: Any) -> DescribedByRows:
    # Imported with the first one: most jobs have none.
    from fleet_mpi.parameter_server.tables.growing.description import GrowingDescription
    return GrowingDescription(*fields, **named)


# Tables that are asked for rows, by kind. The dense one is not declared: every job has it.
TABLES: dict[str, Callable[..., DescribedByRows]] = {
    "rows": rows.RowTableDescription,
    "growing": _growing,
}


def described(kind: str, *fields: Any, **named: Any) -> DescribedByRows:
    """The description of a table of this kind; the rest is what the kind wants to know."""
    if kind not in TABLES:
        raise UsageError(f"no kind of table is called {kind!r}; {nearest(kind, TABLES)}")
    return TABLES[kind](*fields, **named)
