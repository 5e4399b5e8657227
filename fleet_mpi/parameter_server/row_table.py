"""What a server keeps of a variable that travels by rows."""

from typing import NamedTuple


class RowTableDescription(NamedTuple):
    """What both sides know of a table."""

    name: str
    shape: tuple
    dtype: str
    shards: tuple
    recipe: object
