"""When servers store a row of a table that takes any id; one process stores every row at once."""

from __future__ import annotations

from fleet_mpi.errors import UsageError


class ProbabilityEntry:
    """The row of an id is stored with this probability by each update that has it."""

    def __init__(self, probability: float) -> None:
        if not isinstance(probability, float) or not 0 < probability <= 1:
            raise UsageError(f"ProbabilityEntry: expected a probability above 0, at most 1, got {probability!r}")
        self.probability = probability

    def _to_attr(self) -> str:
        return f"probability_entry:{self.probability}"


class ShowClickEntry:
    """The names of the variables with the shows and clicks of each sample; every row is stored at once."""

    def __init__(self, show_name: str, click_name: str) -> None:
        if not isinstance(show_name, str) or not isinstance(click_name, str):
            raise UsageError(f"ShowClickEntry: expected two names of variables, got {show_name!r} and {click_name!r}")
        self.show_name, self.click_name = show_name, click_name

    def _to_attr(self) -> str:
        return f"show_click_entry:{self.show_name}:{self.click_name}"


class CountFilterEntry:
    """The row of an id is stored by the push of this number that has it; 0 and 1 mean the first."""

    def __init__(self, count_filter: int) -> None:
        if not isinstance(count_filter, int) or isinstance(count_filter, bool) or count_filter < 0:
            raise UsageError(f"CountFilterEntry: expected a whole number from 0 up, got {count_filter!r}")
        self.count_filter = count_filter

    def _to_attr(self) -> str:
        return f"count_filter_entry:{self.count_filter}"
