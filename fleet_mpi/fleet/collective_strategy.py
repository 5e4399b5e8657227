"""DistributedStrategy of the 1.x collective fleet: a BuildStrategy with more options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi import notices
from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.program.engine.compiled import BuildStrategy, ExecutionStrategy

if TYPE_CHECKING:
    from typing import Any

_MORE: dict[str, Any] = dict(
    use_local_sgd=False, use_dist_fc=False, dist_fc_config=None, mode="nccl2", collective_mode=None,
    nccl_comm_num=1, forward_recompute=False, recompute_checkpoints=[], use_amp=False, amp_loss_scaling=2 ** 15,
    exec_strategy=None, fuse_memory_size=-1, fuse_laryer_size=1, _ut4grad_allreduce=False)


class DistributedStrategy(BuildStrategy):
    """How a job without servers trains; recomputing and mixed precision also apply to one process.

    An option that it does not know is kept and said once: the original's, a Python class, takes any name.
    """

    defaults = {**BuildStrategy.defaults, **_MORE}

    def __init__(self) -> None:
        super().__init__()
        self.exec_strategy = ExecutionStrategy()
        self.recompute_checkpoints: list[Any] = []

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "mode" and value not in ("nccl2", "collective"):
            raise UsageError(f"DistributedStrategy.mode: expected nccl2 or collective, got {value!r}")
        if name == "recompute_checkpoints" and not isinstance(value, (list, tuple)):
            raise UsageError(f"DistributedStrategy.recompute_checkpoints: expected a list of variables, got {value!r}")
        if name not in self.defaults:
            notices.once(("collective strategy", name),
                         f"DistributedStrategy (1.x, without servers) has no option {name!r}, nothing follows from it; "
                         f"{nearest(name, self.defaults)} (options of a BuildStrategy are set on it directly)")
        self.__dict__[name] = value
