"""The fleet of 1.x with pslib's servers: tables of rows; models are saved and loaded whole.

What concerns single tables by number, or a server's uncommitted updates, is refused with a sentence.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from fleet_mpi.checkpoint.loading import load_persistables
from fleet_mpi.errors import not_built
from fleet_mpi.fleet.facade import Fleet
from fleet_mpi.fleet.optimizer import PSLibOptimizer
from fleet_mpi.program.layers.embedding import any_height

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fleet_mpi.fleet.optimizer import DistributedOptimizer
    from fleet_mpi.program.optimizers.base import Optimizer

_BY_NUMBER = "tables have no numbers here; save_persistables and load_model take all variables, io.save_vars some of " \
             "them"
_SHADOW = "servers keep no uncommitted updates; save with save_persistables, and load an older folder to go back"
_DENSE = "dense variables have no rows to drop"


class PSLibFleet(Fleet):
    """1.x training with pslib's servers: tables of rows that grow."""

    optimizer_class = PSLibOptimizer
    _opt_info = _fleet_ptr = None  # of the original's own servers

    def distributed_optimizer(self, optimizer: Optimizer, strategy: Any = None) -> DistributedOptimizer:
        """The optimizer with pslib's dictionary of table settings, which mean nothing to one process."""
        return super().distributed_optimizer(optimizer, dict(strategy or {}))

    def _set_client_communication_config(self, request_timeout_ms: int, connect_timeout_ms: int,
                                         max_retry: int) -> None:
        """Time-outs of requests to servers: one process makes none."""

    def save_model(self, model_dir: str | None = None, **kwargs: Any) -> None:
        """Save all that was trained into a folder; ``mode`` (whole, or what changed) makes no difference."""
        self.save_persistables(None, model_dir)

    def load_model(self, model_dir: str | None = None, **kwargs: Any) -> None:
        """Load what ``save_model`` wrote."""
        load_persistables(None, model_dir, self._program())

    def shrink_sparse_table(self) -> None:
        """``shrink`` with the threshold of the original's tables."""
        self.shrink()

    load_one_table = not_built("fleet.load_one_table", _BY_NUMBER)
    save_one_table = not_built("fleet.save_one_table", _BY_NUMBER)
    clear_one_table = not_built("fleet.clear_one_table", _BY_NUMBER)
    print_table_stat = not_built("fleet.print_table_stat", _BY_NUMBER)
    clear_model = not_built("fleet.clear_model", "run the startup program again instead")
    confirm = not_built("fleet.confirm", _SHADOW)
    revert = not_built("fleet.revert", _SHADOW)
    shrink_dense_table = not_built("fleet.shrink_dense_table", _DENSE)
    save_cache_model = not_built("fleet.save_cache_model", "there is no cache of tables to save; take save_model")


@contextlib.contextmanager
def fleet_embedding(click_name: str, scale_sparse_grad: bool = True) -> Iterator[None]:
    """Distributed embeddings within the block take any id; rows are kept without counts of shows and clicks."""
    with any_height():
        yield


pslib_fleet = PSLibFleet()
