"""Every flag that says when parameters move, decoded in one place: a config becomes (mode, its options)."""

from fleet_mpi import settings
from fleet_mpi.errors import UsageError

# What a communicator is told where nothing else is: ``a_sync_configs`` and the 1.x trainer_runtime_config change it.
COMMUNICATOR = dict(max_merge_var_num=1, send_queue_size=16, independent_recv_thread=False,
                    min_send_grad_num_before_recv=1, thread_pool_size=1, send_wait_times=1, is_sgd_optimizer=True)


def chosen_mode(config, sync_mode=True, communicator=None):
    """(name, options) of the mode that a DistributeTranspilerConfig and transpile's ``sync_mode`` ask for."""
    is_sync = (config.sync_mode and sync_mode) or config.completely_not_async
    if config.sync_mode and sync_mode and config.runtime_split_send_recv:
        raise UsageError("runtime_split_send_recv is for asynchronous training: set sync_mode = False with it")
    if is_sync and config.enable_dc_asgd:
        raise UsageError("enable_dc_asgd corrects asynchronous training: set sync_mode = False with it")
    if config.geo_sgd_mode:
        return "geo", {"k_steps": _at_least_one("geo_sgd_need_push_nums", config.geo_sgd_need_push_nums)}
    if is_sync:
        return "sync", {}
    if config.enable_dc_asgd:
        return "delay_compensated", {"lambda_": config.dc_asgd_lambda, "adaptive": config.dc_asgd_adaptive,
                                     "bound": config.dc_asgd_bound}
    staleness = config.staleness if config.staleness is not None else settings.get("FLEET_MPI_STALENESS")
    if staleness >= 0:
        return "bounded_staleness", {"bound": staleness}
    told = {**COMMUNICATOR, **communicator_flags(), **(communicator or {})}
    if config.half_async or not config.runtime_split_send_recv:
        return "half_async", {"max_merge_var_num": told["max_merge_var_num"]}
    return "async", told


def communicator_flags():
    """{option: value} of the communicator's options that the environment sets."""
    flags = {name: settings.get(f"FLAGS_communicator_{name}") for name in COMMUNICATOR}
    return {name: value for name, value in flags.items() if value >= 0}


def _at_least_one(name, value):
    if int(value) < 1:
        raise UsageError(f"{name}: expected a whole number from 1 up, got {value!r}")
    return int(value)
