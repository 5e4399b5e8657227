"""Every flag that says when parameters move, decoded in one place: a config becomes (mode, its options)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from fleet_mpi import settings
from fleet_mpi.errors import UsageError
from fleet_mpi.modes import MODES

if TYPE_CHECKING:
    from typing import Any

    from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig

# What a communicator is told where nothing else is: ``a_sync_configs`` and the 1.x trainer_runtime_config change it.
COMMUNICATOR = dict(max_merge_var_num=1, send_queue_size=16, independent_recv_thread=False,
                    min_send_grad_num_before_recv=1, thread_pool_size=1, send_wait_times=1, is_sgd_optimizer=True)


def chosen_mode(config: DistributeTranspilerConfig, sync_mode: bool = True,
                communicator: Any = None) -> tuple[str, dict[str, Any]]:
    """(name, options) of the mode that a DistributeTranspilerConfig and transpile's ``sync_mode`` ask for."""
    is_sync = (config.sync_mode and sync_mode) or config.completely_not_async
    if config.sync_mode and sync_mode and config.runtime_split_send_recv:
        raise UsageError("runtime_split_send_recv is for asynchronous training: set sync_mode = False with it")
    if is_sync and config.enable_dc_asgd:
        raise UsageError("enable_dc_asgd corrects asynchronous training: set sync_mode = False with it")
    staleness = config.staleness if config.staleness is not None else settings.get("FLEET_MPI_STALENESS")
    decided = SimpleNamespace(**{**vars(config), "sync_mode": is_sync, "staleness": staleness})
    mode = [mode for mode in MODES.values() if mode.asked_for(decided)][-1]
    told = {**COMMUNICATOR, **communicator_flags(), **(communicator or {})}
    of_worker = {option: told[option] for option in mode.worker.options if option in told}
    return mode.name, {**of_worker, **mode.options_of(decided)}


def communicator_flags() -> dict[str, Any]:
    """{option: value} of the communicator's options that the environment sets."""
    flags = {name: settings.get(f"FLAGS_communicator_{name}") for name in COMMUNICATOR}
    return {name: value for name, value in flags.items() if value >= 0}
