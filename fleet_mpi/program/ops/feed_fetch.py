"""The ops that stand for feeding and fetching in saved programs: shown, counted, never run.

An executor copies feeds in and fetches out by name, whether or not a program has them.
"""

from fleet_mpi.program.graph.registry import op


@op("feed", "X", attrs={"col": 0}, by_executor=True)
class Feed:
    """The ``col``-th of the things that are fed."""

    def infer(k):
        """As the variable was declared."""


@op("fetch", "X", attrs={"col": 0}, by_executor=True)
class Fetch:
    """The ``col``-th of the things that are fetched."""

    def infer(k):
        """The list has no shape."""
