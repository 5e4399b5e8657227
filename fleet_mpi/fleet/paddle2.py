"""``paddle.distributed.fleet``: the facade of 2.x, one object whose methods are the module's functions."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from fleet_mpi.checkpoint.loading import load_persistables
from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.facade import Fleet
from fleet_mpi.fleet.role_makers import PaddleCloudRoleMaker
from fleet_mpi.fleet.strategy import DistributedStrategy
from fleet_mpi.fleet.together import Util
from fleet_mpi.program.optimizers.base import refuse_eager

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import numpy as np
    from numpy.typing import ArrayLike

    from fleet_mpi.fleet.optimizer import DistributedOptimizer
    from fleet_mpi.fleet.roles import RoleMaker
    from fleet_mpi.program.engine.executor import Executor
    from fleet_mpi.program.engine.scope import Scope
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.program.graph.variable import Parameter, Variable
    from fleet_mpi.program.layers.layer import Layer
    from fleet_mpi.program.optimizers.base import Optimizer

META_OPTIMIZERS = dict(
    amp="AMPOptimizer", recompute="RecomputeOptimizer", gradient_merge="GradientMergeOptimizer", lars="LarsOptimizer",
    lamb="LambOptimizer", dgc="DGCOptimizer", localsgd="LocalSGDOptimizer",
    adaptive_localsgd="AdaptiveLocalSGDOptimizer",
    fp16_allreduce="FP16AllReduceOptimizer")


class Fleet2(Fleet):
    """The 2.x fleet; a strategy given to ``init`` is used where ``distributed_optimizer`` gets none."""

    connects_at_start = False

    def __init__(self) -> None:
        super().__init__()
        self.util = Util(self)

    def init(self, role_maker: RoleMaker | None = None, is_collective: bool = False, strategy: Any = None,
             log_level: str | int = "INFO") -> Any:
        """Take a role; without a role maker from PADDLE_* variables, or as the one worker."""
        if strategy is not None and not isinstance(strategy, DistributedStrategy):
            raise UsageError(f"fleet.init: expected a DistributedStrategy, got {type(strategy).__name__}")
        if not isinstance(is_collective, bool):
            raise UsageError(f"fleet.init: is_collective must be True or False, got {is_collective!r}")
        self._strategy = copy.deepcopy(strategy) if strategy is not None else DistributedStrategy()
        self._take_role(role_maker if role_maker is not None else PaddleCloudRoleMaker(is_collective=is_collective))
        return self

    def distributed_optimizer(self, optimizer: Optimizer, strategy: Any = None) -> DistributedOptimizer:
        """The optimizer with a strategy (else the one given to ``init``) applied."""
        return super().distributed_optimizer(optimizer, strategy if strategy is not None else self._strategy)

    def minimize(self, loss: Variable, startup_program: Program | None = None,
                 parameter_list: Sequence[Parameter | str] | None = None, no_grad_set: Any = None) -> Any:
        """``minimize`` of the optimizer given last to ``distributed_optimizer``."""
        if self._optimizer is None:
            raise UsageError("fleet.minimize: call fleet.distributed_optimizer(optimizer, strategy) first")
        return self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)

    def init_worker(self, scopes: Any = None) -> None:
        """Get ready to train; nothing to wait for in one process."""
        super().init_worker()

    def init_server(self, *args: Any, **kwargs: Any) -> None:
        """Load saved parameters, where a folder is given (first, or as ``dirname``)."""
        super().init_server(args[0] if args else kwargs.get("dirname"))

    def save_persistables(self, executor: Executor | None, dirname: str, main_program: Program | None = None,
                          mode: int = 0) -> None:
        """Save parameters and optimizer state."""
        super().save_persistables(executor, dirname, main_program)

    def distributed_model(self, model: Layer) -> Layer:
        """The layer itself: one worker has nothing to average."""
        return model

    def all_reduce(self, input: ArrayLike, mode: str = "sum") -> np.ndarray:
        """The workers' arrays combined."""
        return self.util.all_reduce(input, mode)

    def node_num(self) -> int:
        """How many machines the job's processes are on."""
        return self.role._node_num()

    def world_size(self) -> int:
        """How many workers there are."""
        return self.worker_num()

    def save(self, dirname: str, feed: Sequence[str] = (), fetch: Sequence[Variable] = (), **configs: Any) -> None:
        """Save a model for inference where ``feed`` and ``fetch`` say which, else all that was trained."""
        if not feed and not fetch:
            return self.save_persistables(None, dirname)
        block = (self._origin_program or self._program()).global_block()
        return self.save_inference_model(None, dirname, [getattr(one, "name", one) for one in feed],
                                         [block.var(getattr(one, "name", one)) for one in fetch])

    def load_model(self, path: str, mode: int = 0) -> None:
        """Load what ``save_persistables`` wrote."""
        load_persistables(None, path, self._program())

    def _get_applied_meta_list(self) -> list[str]:
        """The names of the original's classes for the switches that ``minimize`` applied."""
        chosen = self._final_strategy()
        return [name for switch, name in META_OPTIMIZERS.items() if getattr(chosen, switch, False)]

    def _get_applied_graph_list(self) -> list[str]:
        """The name of the original's class for programs of equal workers, where this is one."""
        return ["GraphExecutionOptimizer"] if self._job is not None and not self.server_num() else []

    def set_lr(self, value: float) -> None:
        """Learn with another rate from now on."""
        self._trained("set_lr").set_lr(value)

    def get_lr(self) -> float:
        """The present learning rate."""
        return self._trained("get_lr").get_lr()

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer given last to ``distributed_optimizer``."""
        return self._trained("state_dict").state_dict()

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Let that optimizer go on from where its ``state_dict()`` was taken."""
        self._trained("set_state_dict").set_state_dict(state_dict)

    def amp_init(self, place: Any, scope: Scope | None = None, test_program: Program | None = None,
                 use_fp16_test: bool = False) -> None:
        """Cast parameters for mixed precision, where the strategy asks for it."""
        return self._trained("amp_init").amp_init(place, scope, test_program, use_fp16_test)

    def step(self) -> None:
        """Refuse: there are no eager gradients here."""
        refuse_eager(self._trained("step"), "step")

    def clear_grad(self) -> None:
        """Refuse: there are no eager gradients here."""
        refuse_eager(self._trained("clear_grad"), "clear_grad")

    def _trained(self, method: str) -> Any:
        if self._optimizer is None:
            raise UsageError(f"fleet.{method}: call fleet.distributed_optimizer(optimizer, strategy) first")
        return self._optimizer


paddle_fleet = Fleet2()
