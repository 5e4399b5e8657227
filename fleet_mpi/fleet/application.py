"""From an optimizer and a strategy to the optimizer that trains: all flags that concern it are decoded here.

What workers do together is ``collective_job``'s; which switches go together is ``selection``'s. What is not built is
refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.fleet import collective_strategy, strategy, transpiler_strategies
from fleet_mpi.fleet.without_effect import REFUSED
from fleet_mpi.program.build.amp import AutoMixedPrecisionLists, decorate
from fleet_mpi.program.optimizers.compressed import DGCMomentumOptimizer
from fleet_mpi.program.optimizers.plain import Adam, Lamb, LarsMomentum, Momentum
from fleet_mpi.program.optimizers.wrappers import GradientMergeOptimizer, RecomputeOptimizer
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fleet_mpi.program.optimizers.base import Optimizer

_LOSS_SCALING = ("init_loss_scaling", "incr_every_n_steps", "decr_every_n_nan_or_inf", "incr_ratio", "decr_ratio",
                 "use_dynamic_loss_scaling")
_LAMB = ("beta1", "beta2", "epsilon")
_DEGREES = ("mp_degree", "pp_degree", "sharding_degree", "sep_degree")


def applied(optimizer: Optimizer, chosen: Any, workers: int = 1) -> Optimizer:
    """The optimizer as the strategy (of 1.x or 2.x, or None) wants it among so many workers."""
    if isinstance(chosen, strategy.DistributedStrategy):
        return _by_switches(optimizer, chosen, workers)
    if isinstance(chosen, collective_strategy.DistributedStrategy):
        return _by_collective_options(optimizer, chosen)
    if chosen is None or isinstance(chosen, (DistributeTranspilerConfig, transpiler_strategies.DistributedStrategy,
                                             dict)):
        return optimizer
    raise UsageError(f"distributed_optimizer: expected a strategy or a DistributeTranspilerConfig, got "
                     f"{type(chosen).__name__}")


def _by_switches(optimizer: Any, chosen: Any, workers: int) -> Any:
    _refuse_what_is_not_built(chosen)
    if chosen.dgc and workers > 1 and isinstance(optimizer, Momentum):
        optimizer = _dgc(optimizer, chosen.dgc_configs, workers)
    if chosen.lars and isinstance(optimizer, Momentum):
        optimizer = _lars(optimizer, chosen.lars_configs)
    if chosen.lamb and isinstance(optimizer, Adam):
        optimizer = _lamb(optimizer, chosen.lamb_configs)
    if chosen.recompute:
        optimizer = _recomputing(optimizer, chosen.recompute_configs["checkpoints"])
    if chosen.amp:
        settings = chosen.amp_configs
        lists = AutoMixedPrecisionLists(settings["custom_white_list"], settings["custom_black_list"],
                                        settings["custom_black_varnames"])
        optimizer = decorate(optimizer, lists, **{key: settings[key] for key in _LOSS_SCALING})
    if chosen.gradient_merge and chosen.gradient_merge_configs["k_steps"] > 1:
        settings = chosen.gradient_merge_configs
        optimizer = GradientMergeOptimizer(optimizer, settings["k_steps"], settings["avg"])
    return optimizer


def _refuse_what_is_not_built(chosen: Any) -> None:
    wanted = [name for name in sorted(REFUSED) if getattr(chosen, name)]
    wanted += [f"hybrid_configs[{name!r}]" for name in _DEGREES if chosen.hybrid_configs[name] > 1]
    if wanted:
        raise NotBuilt(f"DistributedStrategy: {', '.join(wanted)} not built; unset it to train data-parallel")


def _by_collective_options(optimizer: Any, chosen: Any) -> Any:
    if chosen.use_dist_fc:
        raise NotBuilt("DistributedStrategy: use_dist_fc not built; unset it")
    if chosen.use_local_sgd and isinstance(optimizer, (DGCMomentumOptimizer, Lamb)):
        raise UsageError(f"DistributedStrategy: use_local_sgd does not go together with {type(optimizer).__name__}")
    if chosen.forward_recompute:
        optimizer = _recomputing(optimizer, chosen.recompute_checkpoints)
    if chosen.use_amp:
        optimizer = decorate(optimizer, init_loss_scaling=chosen.amp_loss_scaling)
    return optimizer


def _recomputing(optimizer: Any, checkpoints: Any) -> RecomputeOptimizer:
    if not checkpoints:
        raise UsageError("DistributedStrategy: recomputing needs the list of checkpoints (recompute_configs = "
                         "{'checkpoints': [...]}, in 1.x recompute_checkpoints)")
    wrapped = RecomputeOptimizer(optimizer)
    wrapped._set_checkpoints(list(checkpoints))
    return wrapped


def _dgc(momentum: Momentum, settings: Mapping[str, Any], workers: int) -> DGCMomentumOptimizer:
    """Deep gradient compression in the place of Momentum, as the switch ``dgc`` means it."""
    return DGCMomentumOptimizer(momentum.learning_rate.given, momentum.hypers["mu"], settings["rampup_begin_step"],
                                settings["rampup_step"], settings["sparsity"] or [0.999],
                                momentum.hypers["use_nesterov"], num_trainers=workers,
                                regularization=momentum.regularization, grad_clip=momentum._grad_clip,
                                name=momentum._name, parameter_list=momentum._parameter_list)


def _lars(momentum: Momentum, settings: Mapping[str, Any]) -> LarsMomentum:
    """LARS in the place of Momentum, as the switch ``lars`` means it."""
    return LarsMomentum(momentum.learning_rate.given, momentum.hypers["mu"], settings["lars_coeff"],
                        settings["lars_weight_decay"], momentum._parameter_list, momentum.regularization,
                        momentum._grad_clip, momentum._name, settings["exclude_from_weight_decay"],
                        settings["epsilon"])


def _lamb(adam: Adam, settings: Mapping[str, Any]) -> Lamb:
    """LAMB in the place of Adam, as the switch ``lamb`` means it."""
    excluded = settings["exclude_from_weight_decay"]
    return Lamb(adam.learning_rate.given, settings["lamb_weight_decay"],
                **{name: adam.hypers[name] for name in _LAMB}, parameter_list=adam._parameter_list,
                regularization=adam.regularization, grad_clip=adam._grad_clip, name=adam._name,
                exclude_from_weight_decay_fn=lambda param: any(word in param.name for word in excluded))
