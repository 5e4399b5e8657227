"""A table of rows that servers keep and update, as one worker sees it: rows are pulled, and gradients pushed, by id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT, Rows
from fleet_mpi.door import gate
from fleet_mpi.door.keeping import checked_shrink
from fleet_mpi.parameter_server.tables.rows import refuse_outside
from fleet_mpi.update_rules import merge

if TYPE_CHECKING:
    from fleet_mpi.door.job import Job
    from fleet_mpi.door.rates import LearningRate
    from fleet_mpi.parameter_server.tables.growing.keeping import Keeping


class Table:
    """A table of a job. Made by ``Job.table``.

    Attributes:
        name, dim, height, dtype: as it was declared; without height every int64 id is a row.
    """

    def __init__(self, job: Job, name: str, dim: int, height: int, dtype: str, rate: LearningRate,
                 keeping: Keeping) -> None:
        self._job, self._rate, self._height, self._keeping = job, rate, height, keeping
        self.name, self.dim, self.dtype = name, dim, np.dtype(dtype)
        self.height = None if height == ANY_HEIGHT else height
        self.init: np.ndarray | None = None   # rows that worker 0 gives the servers
        self._kept: Rows | None = None

    @property
    def lr(self) -> Any:
        """The learning rate: a number, or a function of the step. May be set at any time."""
        return self._rate.value

    @lr.setter
    def lr(self, value: Any) -> None:
        self._rate.set(value)

    @property
    def count(self) -> int:
        """How many rows the servers store: without height, those that were pushed to; with one, all.

        Any worker, at any time between steps. What this worker has left to send is sent; a request to every server
        then, where there is no height: blocks for their answers.
        """
        return self._job._use("count").count_rows(self) if self.height is None else self.height

    def pull(self, ids: Any, out: Any = None) -> np.ndarray:
        """The rows of these ids, [*shape of the ids, dim], as the servers have them now.

        Any worker, at any time between steps. Blocks for the answer of the servers that have them; waits for no other
        worker. Ids may repeat; each row travels once.

        Args:
            out: an array to fill, and to return.
        """
        ids = gate.ids(ids, f"table {self.name!r}")
        shape = (*ids.shape, self.dim)
        if out is not None:
            out = gate.to_fill(gate.like(out, shape, self.dtype, f"table {self.name!r}: out"),
                               f"table {self.name!r}: out")
        return self._job._use("pull").pull_rows(self, ids, shape, out)

    def push(self, ids: Any, grads: Any) -> None:
        """Keep the gradients of some rows, merged by id, for the step that ``push_pull`` or ``job.step()`` ends next.

        Nothing is sent before that, and nothing blocks: a step is one request per server, with the dense gradients and
        the rows of all tables. So push rows first; what is pushed after ``push_pull`` belongs to the next step. May be
        called several times in a step; gradients of one id add up. The memory of ``grads`` may be used again at once.

        Args:
            grads: [*shape of the ids, dim], of the table's type.
        """
        ids = gate.ids(ids, f"table {self.name!r}")
        values = gate.like(grads, (*ids.shape, self.dim), self.dtype, f"table {self.name!r}: gradients")
        line = np.ascontiguousarray(ids).reshape(-1)
        if self.height is not None:
            refuse_outside(self.name, line, self.height)
        rows = Rows(line, np.ascontiguousarray(values).reshape(-1, self.dim), self._height)
        if self._kept is not None:
            rows = Rows(np.concatenate([self._kept.ids, rows.ids]), np.concatenate([self._kept.values, rows.values]),
                        self._height)
        self._kept = merge(rows)

    def shrink(self, older_than: int | None = None, fewer_than: int | None = None) -> int:
        """Let the servers forget rows, all at one moment between two updates; returns how many went.

        Any worker, at any time between steps; the others need not call it. What this worker has left to send is sent.
        Blocks until all servers have done it: their other workers' pushes wait meanwhile.

        Args:
            older_than: forget rows that none of the last so many updates pushed: score="last_seen".
            fewer_than: forget rows that fewer than so many pushes had since they were stored or this was asked last:
                score="count".
        """
        return self._job._use("shrink").shrink(self, *checked_shrink(self._keeping, older_than, fewer_than,
                                                                     f"table {self.name!r}: shrink"))

    def _take(self) -> Rows | None:
        """What was pushed for the step that ends now."""
        kept, self._kept = self._kept, None
        return kept
