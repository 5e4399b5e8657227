"""What ``fleet.distributed_optimizer`` returns: an optimizer that trains as a strategy says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.application import applied
from fleet_mpi.fleet.collective_job import CollectiveJob
from fleet_mpi.fleet.job import Job, config_of
from fleet_mpi.fleet.selection import valid_strategy
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.graph.structures import as_list
from fleet_mpi.program.optimizers.wrappers import Wrapper
from fleet_mpi.transpile.collective import HALF

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fleet_mpi.fleet.facade import Fleet
    from fleet_mpi.program.graph.operator import Operator
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.program.graph.variable import Parameter, Variable
    from fleet_mpi.program.optimizers.base import Optimizer

    # What ``minimize`` returns: the update ops, and each parameter with its gradient.
    Minimised = tuple[list[Operator], list[tuple[Variable, Variable]]]

# Calls of optimizers that add updates; the fleet sees those of ``minimize`` only.
_PAST_THE_FLEET = ("apply_gradients", "apply_optimize")


class DistributedOptimizer:
    """An optimizer with a strategy; in one process the parts of the strategy that need no peers.

    Whatever it does not know itself is asked of the optimizer inside.
    """

    def __init__(self, fleet: Fleet, optimizer: Optimizer, strategy: Any) -> None:
        if not hasattr(optimizer, "minimize"):
            raise UsageError(f"distributed_optimizer: expected an optimizer, got {type(optimizer).__name__}")
        self._fleet = fleet
        self._strategy = valid_strategy(strategy, optimizer, 1 if fleet.is_alone() else fleet.worker_num(),
                                        not fleet.is_alone() and fleet.server_num() > 0)
        self._inner = applied(optimizer, self._strategy, fleet.worker_num())

    def minimize(self, loss: Variable, startup_program: Program | None = None,
                 parameter_list: Sequence[Parameter | str] | None = None, no_grad_set: Any = None) -> Minimised:
        """Add backward and update ops to the program of the loss; returns (optimize_ops, params_grads)."""
        fleet, program = self._fleet, loss.block.program
        result = self._inner.minimize(loss, startup_program=startup_program, parameter_list=parameter_list,
                                      no_grad_set=no_grad_set)
        # Scripts save and test what they trained through it: whole, before it would be spread over processes.
        fleet._origin_program = program.clone()
        startup = startup_program or default_startup_program()
        if fleet.is_alone():
            fleet.main_program, fleet.startup_program = program, startup
        elif not fleet.role.server_num():
            fleet._job = CollectiveJob(fleet.role, program, startup, self._strategy)
            fleet.main_program, fleet.startup_program = program, startup
        else:
            fleet._job = Job(fleet.role, program, startup, self._strategy, fleet.connects_at_start)
            fleet.main_program, fleet.startup_program = fleet._job.main, fleet._job.startup
        return result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_inner" not in self.__dict__:
            raise AttributeError(name)
        if name in _PAST_THE_FLEET and not self._fleet.is_alone():
            raise UsageError(f"{name}: each worker would update its own parameters by its own gradients; call minimize "
                             f"of what fleet.distributed_optimizer returned")
        return getattr(self._inner, name)


class FP16AllReduceOptimizer(Wrapper):
    """Gradients as float16 on their way to other workers, whatever the strategy says; one worker sends none."""

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__(optimizer)

    def apply_gradients(self, params_grads: Sequence[tuple[Variable, Variable]]) -> list[Operator]:
        """Add the update ops, and a note for whoever makes the program that of a worker; returns the ops."""
        program = default_main_program()
        program._fleet_opt = {**(program._fleet_opt or {}), HALF: True}
        return super().apply_gradients(params_grads)


class TranspilerOptimizer(DistributedOptimizer):
    """With the argument list of the 1.x parameter-server fleet, which has servers, whatever its strategy says."""

    def __init__(self, fleet: Fleet, optimizer: Optimizer, strategy: Any) -> None:
        super().__init__(fleet, optimizer, strategy)
        mode = config_of(strategy)[0].mode
        if mode != "pserver":
            raise UsageError(f"distributed_optimizer: config.mode = {mode!r} means training without servers, this "
                             f"fleet has them; leave the mode at 'pserver', or take the fleet of "
                             f"fluid.incubate.fleet.collective")

    def minimize(self, loss: Variable | Sequence[Variable], scopes: Any = None, startup_program: Any = None,
                 parameter_list: Sequence[Parameter | str] | None = None, no_grad_set: Any = None) -> Minimised:
        """Add backward and update ops to the program of the loss; returns (optimize_ops, params_grads)."""
        if isinstance(loss, (list, tuple)):
            raise UsageError("minimize: expected one loss, got a list")
        return super().minimize(loss, startup_program, parameter_list, no_grad_set)


class PSLibOptimizer(DistributedOptimizer):
    """With the argument list of the pslib fleet: one loss, or a list of losses of several programs."""

    def minimize(self, losses: Variable | Sequence[Variable], scopes: Any = None, startup_programs: Any = None,
                 parameter_list: Sequence[Parameter | str] | None = None, no_grad_set: Any = None,
                 program_mode: str = "all_reduce") -> Minimised:
        """Add backward and update ops to each loss's program; returns (optimize_ops, params_grads) of the last."""
        losses = as_list(losses)
        startups = as_list(startup_programs) if startup_programs is not None else [None] * len(losses)
        if len(startups) != len(losses):
            raise UsageError(f"minimize: expected a startup program per loss, got {len(startups)} for {len(losses)}")
        for loss, startup in zip(losses, startups):
            result = super().minimize(loss, startup, parameter_list, no_grad_set)
        return result
