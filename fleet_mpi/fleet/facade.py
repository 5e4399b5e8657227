"""The fleet objects that scripts of 1.x call.

A world of several processes trains with servers or, all being workers, without; what this process does is its Job's
business (``job.py``, ``collective_job.py``). One process trains alone, with the parameters in itself: everything a
script does around training works there too.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from fleet_mpi import notices, settings
from fleet_mpi.checkpoint.loading import load_all
from fleet_mpi.checkpoint.saving import save_inference_model, save_persistables
from fleet_mpi.checkpoint.sources import Source
from fleet_mpi.connections import equal, members
from fleet_mpi.errors import UsageError
from fleet_mpi.fleet import collective_checkpoints
from fleet_mpi.fleet.job import Job
from fleet_mpi.fleet.optimizer import DistributedOptimizer, TranspilerOptimizer
from fleet_mpi.fleet.role_makers import MPISymetricRoleMaker, PaddleCloudRoleMaker
from fleet_mpi.fleet.roles import RoleMaker
from fleet_mpi.modes.options import whole
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.ranks import cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    from numpy.typing import ArrayLike

    from fleet_mpi.fleet.collective_checkpoints import TrainStatus
    from fleet_mpi.fleet.collective_job import CollectiveJob
    from fleet_mpi.program.engine.executor import Executor
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.program.graph.variable import Variable
    from fleet_mpi.program.optimizers.base import Optimizer


_UNSEEN = 30   # calls of ``shrink`` that a row may count where nothing is said


class Mode(enum.IntEnum):
    """The kinds of 1.x fleet, as the original numbers them."""

    TRANSPILER = 1
    PSLIB = 2
    COLLECTIVE = 3


class Fleet:
    """What all kinds of fleet share: roles, file shards, starting and stopping, saving."""

    # What ``distributed_optimizer`` returns; its ``minimize`` has the argument list of the kind of fleet.
    optimizer_class = DistributedOptimizer
    # 1.x: the startup program comes after init_worker and ends with the servers' values. 2.x: it comes before.
    connects_at_start = True
    # Whether a job of several processes may have servers.
    has_servers = True

    def __init__(self) -> None:
        self._role_maker: RoleMaker | None = None
        self._optimizer: DistributedOptimizer | None = None
        self._job: Job | CollectiveJob | None = None
        self.main_program: Program | None = None
        self.startup_program: Program | None = None
        self._origin_program: Program | None = None
        self._strategy: Any = None

    def init(self, role_maker: RoleMaker | None = None) -> None:
        """Take a role; without a role maker the one for MPI. Must come before anything else."""
        self._take_role(role_maker if role_maker is not None else MPISymetricRoleMaker())

    def _take_role(self, role_maker: RoleMaker) -> None:
        if not isinstance(role_maker, RoleMaker):
            raise UsageError(f"fleet.init: expected a role maker, got {type(role_maker).__name__}")
        role_maker.generate_role()
        members.leave_at_exit()
        equal.watch_others()
        cluster.share_seed()
        self._role_maker = role_maker
        if not self.has_servers and role_maker.server_num() and not self.is_alone():
            raise UsageError(f"fleet.init: this fleet trains without servers, and the role maker has "
                             f"{role_maker.server_num()}: use PaddleCloudRoleMaker(is_collective=True), or the fleet "
                             f"of parameter_server")
        if self.is_alone() and role_maker.server_num():
            notices.once("embedded", f"fleet.init: one worker keeps its parameters itself; the "
                                     f"{role_maker.server_num()} server(s) of this job have nothing to do")

    def is_alone(self) -> bool:
        """Whether this process is the whole job."""
        return cluster.world().size == 1

    @property
    def role(self) -> RoleMaker:
        """The role maker given to ``init``."""
        return self._need_role()

    def _need_role(self) -> RoleMaker:
        if self._role_maker is None:
            raise UsageError("call fleet.init() first: the role of this process is not known yet")
        return self._role_maker

    def is_worker(self) -> bool:
        """Whether this process trains."""
        return self.role.is_worker()

    def is_server(self) -> bool:
        """Whether this process keeps parameters for others."""
        return self.role.is_server()

    def is_first_worker(self) -> bool:
        """Whether this is worker 0."""
        return self.role.is_first_worker()

    def worker_index(self) -> int:
        """The number of this worker."""
        return self.role.worker_index()

    def worker_num(self) -> int:
        """How many workers there are."""
        return self.role.worker_num()

    def server_index(self) -> int:
        """The number of this server."""
        return self.role.server_index()

    def server_num(self) -> int:
        """How many servers there are."""
        return self.role.server_num()

    def local_rank(self) -> int:
        """The number of this process on its machine."""
        return max(0, *map(settings.get, ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")))

    def worker_endpoints(self, to_string: bool = False) -> list[str] | str:
        """The workers' labels, as a list or a comma-separated text."""
        return _joined(self.role.get_trainer_endpoints(), to_string)

    def server_endpoints(self, to_string: bool = False) -> list[str] | str:
        """The servers' labels, as a list or a comma-separated text."""
        return _joined(self.role.get_pserver_endpoints(), to_string)

    def split_files(self, files: Sequence[str]) -> list[str]:
        """This worker's files: contiguous parts, the first workers get one more where it does not divide."""
        return file_shard(files, self.worker_index(), self.worker_num())

    def barrier_worker(self) -> None:
        """Wait for all workers."""
        self.role.barrier_worker()

    def all_reduce_worker(self, input: ArrayLike, output: np.ndarray) -> None:
        """Sum the workers' arrays into ``output``."""
        self.role.all_reduce_worker(input, output)

    def init_worker(self) -> None:
        """Get ready to train: connect to the servers. Nothing to wait for in one process."""
        self._need_role()
        if not self.is_alone():
            self._needed_job("init_worker").init_worker()

    def init_server(self, model_dir: str | None = None) -> None:
        """Give the parameters of this server their first values, from a folder where one is given."""
        self._need_role()
        if not self.is_alone():
            self._needed_job("init_server").init_server(model_dir)
        elif model_dir:
            load_all(Source(model_dir), self.main_program or default_main_program())

    def run_server(self) -> None:
        """Serve until the workers have stopped or ended; refused where this process is no server."""
        if not self.role.is_server():
            raise UsageError("run_server: this process is a worker; ask fleet.is_server() first")
        self._needed_job("run_server").run_server()

    def stop_worker(self) -> None:
        """Say that this worker is done; what was not yet sent is."""
        self._need_role()
        if not self.is_alone():
            self._needed_job("stop_worker").stop_worker()

    def shrink(self, threshold: int | None = None) -> int:
        """Forget rows, of tables that take any id, which no push had for so many calls of this; returns how many went.

        Call it now and then, such as once a day; every row counts the calls since a push had it. Worker 0's servers do
        it between two updates; the other workers' calls do nothing. One process alone keeps every row.

        Args:
            threshold: rows that count so many calls, this one among them, go; 30 if nothing is said.
        """
        threshold = _UNSEEN if threshold is None else whole("fleet.shrink: threshold", threshold, 2)
        if self.is_alone():
            notices.once("shrink", "fleet.shrink: one process that trains alone keeps every row")
            return 0
        job = self._needed_job("shrink")
        if not isinstance(job, Job):
            raise UsageError("fleet.shrink: this job has no servers, and so no tables with rows to forget")
        return job.shrink(threshold)

    def _needed_job(self, call: str) -> Job | CollectiveJob:
        self._need_role()
        if self._job is None:
            raise UsageError(f"{call}: call minimize of fleet.distributed_optimizer(...) first")
        return self._job

    def distributed_optimizer(self, optimizer: Optimizer, strategy: Any = None) -> DistributedOptimizer:
        """The optimizer with the strategy applied; call its ``minimize``."""
        self._need_role()
        self._strategy = strategy
        self._optimizer = self.optimizer_class(self, optimizer, strategy)
        return self._optimizer

    def save_persistables(self, executor: Executor | None, dirname: str, main_program: Program | None = None,
                          filename: str | None = None) -> None:
        """Save parameters and optimizer state; with servers, what they have at one moment."""
        if self._job is not None:
            self._job.save_persistables(dirname, self._origin_of(main_program), filename)
        else:
            save_persistables(executor, dirname, main_program or self._program(), filename)

    def save_inference_model(self, executor: Executor | None, dirname: str, feeded_var_names: Sequence[str],
                             target_vars: Sequence[Variable], main_program: Program | None = None,
                             export_for_deployment: bool = True, mode: int = 0) -> Any:
        """Save what leads from the fed variables to the targets, and its parameters."""
        if self._job is not None:
            return self._job.save_inference_model(dirname, feeded_var_names, target_vars,
                                                  self._origin_of(main_program))
        return save_inference_model(dirname, feeded_var_names, target_vars, executor,
                                    main_program or self._origin_program or self._program())

    def _origin_of(self, program: Program | None) -> Any:
        """The untranspiled program: the one given may be the worker's."""
        return self._origin_program if program is None or program is self.main_program else program

    def _program(self) -> Program:
        return self.main_program or default_main_program()

    def _final_strategy(self) -> Any:
        return self._strategy if self._optimizer is None else self._optimizer._strategy


class TranspilerFleet(Fleet):
    """1.x training with parameter servers."""

    optimizer_class = TranspilerOptimizer


class CollectiveFleet(Fleet):
    """1.x training without servers: every process works. A job of one worker needs no communication."""

    has_servers = False

    def init(self, role_maker: RoleMaker | None = None) -> None:
        """Take a role; without a role maker from PADDLE_TRAINER_* variables, else each rank is a worker."""
        self._take_role(role_maker if role_maker is not None else PaddleCloudRoleMaker(is_collective=True))

    def distributed_optimizer(self, optimizer: Optimizer, strategy: Any = None) -> DistributedOptimizer:
        """The optimizer with the strategy applied; call its ``minimize``."""
        self._need_role()
        self._strategy = strategy
        self._optimizer = CollectiveOptimizer(optimizer, strategy, self)
        return self._optimizer

    @property
    def _transpiled_program(self) -> Program | None:
        """What workers train; here the main program itself."""
        return self.main_program

    def init_worker(self, *given: Any) -> None:
        """Nothing: workers meet when they run the startup program."""
        self._nothing_to_do("init_worker")

    def run_worker(self, *given: Any) -> None:
        """Nothing: workers run their program."""
        self._nothing_to_do("run_worker")

    def init_server(self, model_dir: str | None = None) -> None:
        """There are no servers; every worker loads a folder that is given."""
        self._nothing_to_do("init_server")
        if model_dir:
            load_all(Source(model_dir), self._origin_of(None) or self._program(), runs=self._program())

    def run_server(self, *given: Any) -> None:
        """Nothing: there are no servers."""
        self._nothing_to_do("run_server")

    def stop_worker(self) -> None:
        """Nothing: workers end by themselves."""
        self._nothing_to_do("stop_worker")

    def _nothing_to_do(self, call: str) -> None:
        self._need_role()
        notices.once(f"collective {call}", f"fleet.{call}: a collective job has no servers, so there is nothing to do")

    def save_check_point(self, executor: Executor, path: str, train_status: TrainStatus,
                         main_program: Program | None = None, fs: Any = None, local_cache_path: str = ".cache",
                         remain_all_checkpoint: bool = True) -> int | None:
        """Worker 0 adds a checkpoint to a folder that all workers see; returns its number there."""
        program = self._origin_of(main_program) or self._program()
        return collective_checkpoints.save(self.role, path, train_status, program, fs, remain_all_checkpoint,
                                           self._running(main_program))

    def load_check_point(self, executor: Executor, path: str, trainer_id: int | None = None,
                         main_program: Program | None = None, fs: Any = None, local_cache_path: str = ".cache",
                         ignore_empty: bool = True) -> TrainStatus | None:
        """Collective: all workers take the newest checkpoint of a folder; returns its TrainStatus, or None."""
        program = self._origin_of(main_program) or self._program()
        return collective_checkpoints.load(self.role, path, program, fs, ignore_empty, self._running(main_program))

    def _running(self, program: Program | None) -> Program:
        """What workers run where this program is meant."""
        return self._program() if program is None or program is self._origin_program else program

    def save_checkpoint(self, executor: Executor, path: str, trainer_id: int | None, train_status: TrainStatus,
                        fs: Any = None, main_program: Program | None = None, cache_path: str = ".cache",
                        remain_all_checkpoint: bool = True) -> int | None:
        """``save_check_point`` under its later name."""
        return self.save_check_point(executor, path, train_status, main_program, fs, cache_path, remain_all_checkpoint)

    def load_checkpoint(self, executor: Executor, path: str, trainer_id: int | None, train_status: TrainStatus,
                        fs: Any = None, main_program: Program | None = None, cache_path: str = ".cache",
                        ignore_empty: bool = True) -> TrainStatus | None:
        """``load_check_point`` under its later name: ``train_status`` takes how far training was; None where it was
        not."""
        found = self.load_check_point(executor, path, trainer_id, main_program, fs, cache_path, ignore_empty)
        if found is not None:
            train_status.epoch_no = found.epoch_no
        return found

    def _get_last_checkpoint_no(self, root_path: str, fs: Any = None) -> int:
        """The number of the newest checkpoint of a folder, -1 where there is none."""
        return collective_checkpoints.newest(root_path)

    def clean_redundant_check_points(self, root_path: str, fs: Any = None, checkpoint_num: int = 1) -> None:
        """Worker 0 removes all checkpoints of a folder but the newest ones."""
        collective_checkpoints.clean(self.role, root_path, fs, checkpoint_num)


class CollectiveOptimizer(DistributedOptimizer):
    """With the argument list of 1.x, where it belongs to the one collective fleet."""

    def __init__(self, optimizer: Optimizer, strategy: Any = None, fleet: Fleet | None = None) -> None:
        super().__init__(fleet or collective_fleet, optimizer, strategy)


def file_shard(files: Sequence[str], index: int, count: int) -> list[str]:
    """Part ``index`` of ``count`` contiguous parts of a list; the first parts are one longer if need be."""
    if not isinstance(files, list):
        raise UsageError(f"files: expected a list of paths, got {type(files).__name__}")
    base, more = divmod(len(files), count)
    start = index * base + min(index, more)
    return files[start:start + base + (index < more)]


def _joined(labels: list[str], to_string: bool) -> list[str] | str:
    return ",".join(labels) if to_string else labels


transpiler_fleet, collective_fleet = TranspilerFleet(), CollectiveFleet()
