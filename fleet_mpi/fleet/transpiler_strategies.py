"""The strategies of the 1.x parameter-server fleet: four ways to train, each a set of options.

They hold options only. In one process they all train the same: the one worker's gradients are all there
are, and the parameters they update are its own.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from fleet_mpi import settings
from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.program.engine.compiled import BuildStrategy, ExecutionStrategy, Options
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig, ServerRuntimeConfig
from fleet_mpi.transpile.mode_choice import communicator_flags

if TYPE_CHECKING:
    from typing import Any


class TrainerRuntimeConfig(Options):
    """How a worker merges and sends gradients, as far as several processes take part."""

    defaults = dict(mode=None, max_merge_var_num=1, send_queue_size=1, independent_recv_thread=1,
                    min_send_grad_num_before_recv=1, thread_pool_size=5, send_wait_times=5, is_sgd_optimizer=1)

    def __init__(self) -> None:
        super().__init__()
        threads = settings.get("CPU_NUM") or 1
        self.max_merge_var_num = self.send_queue_size = self.min_send_grad_num_before_recv = threads
        for name, value in communicator_flags().items():
            setattr(self, name, value)


# What ``get_debug_opt`` answers for, with the values of what was not set.
_DEBUG: dict[str, Any] = dict(dump_slot=False, dump_converter="", dump_fields=[], dump_file_num=16, dump_fields_path="",
                              dump_param=[])


class DistributedStrategy:
    """Base: five groups of options, each set from an object or a dictionary of the options to change."""

    # What a kind of training fixes, whatever else is set: (group, option, value).
    marks: tuple[tuple[str, str, Any], ...] = ()

    def __init__(self) -> None:
        self._groups: dict[str, Any] = {
            "program": DistributeTranspilerConfig(), "trainer_runtime": TrainerRuntimeConfig(),
            "server_runtime": ServerRuntimeConfig(), "execute": ExecutionStrategy(), "build": BuildStrategy()}
        self.debug_opt: Any = None
        self._mark()

    def _mark(self) -> None:
        for group, option, value in self.marks:
            setattr(self._groups[group], option, value)

    def _take(self, group: str, given: Any) -> None:
        held = self._groups[group]
        if isinstance(given, dict):
            for option, value in given.items():
                if not hasattr(held, option):
                    raise UsageError(f"{type(self).__name__}: {type(held).__name__} has no option {option!r}; "
                                     f"{nearest(option, vars(held))}")
                setattr(held, option, value)
        elif isinstance(given, type(held)):
            self._groups[group] = given
        else:
            raise UsageError(f"{type(self).__name__}: expected a {type(held).__name__} or a dictionary, got "
                             f"{type(given).__name__}")
        self._mark()

    def set_program_config(self, config: Any) -> None:
        """Take the transpiler's options."""
        self._take("program", config)

    def get_program_config(self) -> DistributeTranspilerConfig:
        """The transpiler's options."""
        return self._groups["program"]

    def set_trainer_runtime_config(self, config: Any) -> None:
        """Take the worker's options."""
        self._take("trainer_runtime", config)

    def get_trainer_runtime_config(self) -> TrainerRuntimeConfig:
        """The worker's options."""
        return self._groups["trainer_runtime"]

    def set_server_runtime_config(self, config: Any) -> None:
        """Take the servers' options."""
        self._take("server_runtime", config)

    def get_server_runtime_config(self) -> ServerRuntimeConfig:
        """The servers' options."""
        return self._groups["server_runtime"]

    def set_execute_strategy(self, config: Any) -> None:
        """Take the options of running."""
        self._take("execute", config)

    def get_execute_strategy(self) -> Any:
        """The options of running."""
        return self._groups["execute"]

    def set_build_strategy(self, config: Any) -> None:
        """Take the options of compiling."""
        self._take("build", config)

    def get_build_strategy(self) -> Any:
        """The options of compiling."""
        return self._groups["build"]

    def set_debug_opt(self, opt_info: Any) -> None:
        """Note what a debugging run would dump; nothing is dumped."""
        self.debug_opt = opt_info

    def get_debug_opt(self) -> dict[str, Any]:
        """What a debugging run would dump, each option with a value; empty if nothing was set."""
        told = self.debug_opt
        if not isinstance(told, dict):
            return {}
        found = {name: told.get(name, value) for name, value in copy.deepcopy(_DEBUG).items()}
        return {**found, "dump_slot": bool(found["dump_slot"]), "dump_converter": str(found["dump_converter"])}


_NOT_CLASSIC = (("program", "sync_mode", False), ("program", "runtime_split_send_recv", True),
                ("build", "async_mode", True))


class SyncStrategy(DistributedStrategy):
    """Workers wait for each other at every step."""

    marks = (*_NOT_CLASSIC, ("program", "half_async", True), ("program", "completely_not_async", True),
             ("execute", "use_thread_barrier", True))


class AsyncStrategy(DistributedStrategy):
    """No worker waits for another."""

    marks = _NOT_CLASSIC


class HalfAsyncStrategy(DistributedStrategy):
    """The threads of a worker wait for each other, workers do not."""

    marks = (*_NOT_CLASSIC, ("program", "half_async", True), ("execute", "use_thread_barrier", True))


class GeoStrategy(DistributedStrategy):
    """Workers train by themselves and exchange what they moved every ``update_frequency`` steps."""

    def __init__(self, update_frequency: int = 100) -> None:
        self.marks = (*_NOT_CLASSIC, ("program", "geo_sgd_mode", True),
                      ("program", "geo_sgd_need_push_nums", update_frequency))
        super().__init__()


class DistributedMode:
    """The ways to train with servers, as the original numbers them."""

    SYNC, ASYNC, HALF_ASYNC, GEO = range(4)


class StrategyFactory:
    """Makes the four strategies."""

    @staticmethod
    def create_sync_strategy() -> SyncStrategy:
        """Workers wait for each other."""
        return SyncStrategy()

    @staticmethod
    def create_half_async_strategy() -> HalfAsyncStrategy:
        """The threads of a worker wait for each other."""
        return HalfAsyncStrategy()

    @staticmethod
    def create_async_strategy() -> AsyncStrategy:
        """Nobody waits."""
        return AsyncStrategy()

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> GeoStrategy:
        """Workers exchange what they moved every so many steps."""
        return GeoStrategy(update_frequency)
