"""``paddle.distributed.fleet``: the facade of 2.x, one object whose methods are the module's functions."""

import copy

import numpy as np

from fleet_mpi import notices
from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.fleet.facade import Fleet
from fleet_mpi.fleet.role_makers import PaddleCloudRoleMaker
from fleet_mpi.fleet.strategy import DistributedStrategy
from fleet_mpi.program.optimizers.base import refuse_eager


class Fleet2(Fleet):
    """The 2.x fleet; a strategy given to ``init`` is used where ``distributed_optimizer`` gets none."""

    connects_at_start = False

    def __init__(self):
        super().__init__()
        self.util = Util(self)

    def init(self, role_maker=None, is_collective=False, strategy=None, log_level="INFO"):
        """Take a role; without a role maker from PADDLE_* variables, or as the one worker."""
        if strategy is not None and not isinstance(strategy, DistributedStrategy):
            raise UsageError(f"fleet.init: expected a DistributedStrategy, got {type(strategy).__name__}")
        if not isinstance(is_collective, bool):
            raise UsageError(f"fleet.init: is_collective must be True or False, got {is_collective!r}")
        self._strategy = copy.deepcopy(strategy) if strategy is not None else DistributedStrategy()
        self._take_role(role_maker if role_maker is not None else PaddleCloudRoleMaker(is_collective=is_collective))
        return self

    def distributed_optimizer(self, optimizer, strategy=None):
        """The optimizer with a strategy (else the one given to ``init``) applied."""
        return super().distributed_optimizer(optimizer, strategy if strategy is not None else self._strategy)

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None):
        """``minimize`` of the optimizer given last to ``distributed_optimizer``."""
        if self._optimizer is None:
            raise UsageError("fleet.minimize: call fleet.distributed_optimizer(optimizer, strategy) first")
        return self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)

    def init_worker(self, scopes=None):
        """Get ready to train; nothing to wait for in one process."""
        super().init_worker()

    def init_server(self, *args, **kwargs):
        """Load saved parameters, where a folder is given (first, or as ``dirname``)."""
        super().init_server(args[0] if args else kwargs.get("dirname"))

    def save_persistables(self, executor, dirname, main_program=None, mode=0):
        """Save parameters and optimizer state."""
        super().save_persistables(executor, dirname, main_program)

    def distributed_model(self, model):
        """The layer itself: one worker has nothing to average."""
        return model

    def all_reduce(self, input, mode="sum"):
        """The workers' arrays combined."""
        return self.util.all_reduce(input, mode)

    def node_num(self):
        """How many machines the workers are on."""
        return 1

    def shrink(self, threshold=None):
        """Drop rarely used rows of tables that grow; tables on servers have a fixed size so far."""
        raise NotBuilt("fleet.shrink: tables on servers have a fixed size, so there are no rows to drop; tables that grow "
                       "are not built yet")

    def set_lr(self, value):
        """Learn with another rate from now on."""
        self._trained("set_lr").set_lr(value)

    def get_lr(self):
        """The present learning rate."""
        return self._trained("get_lr").get_lr()

    def amp_init(self, place, scope=None, test_program=None, use_fp16_test=False):
        """Cast parameters for mixed precision, where the strategy asks for it."""
        return self._trained("amp_init").amp_init(place, scope, test_program, use_fp16_test)

    def step(self):
        """Refuse: there are no eager gradients here."""
        refuse_eager(self._trained("step"), "step")

    def clear_grad(self):
        """Refuse: there are no eager gradients here."""
        refuse_eager(self._trained("clear_grad"), "clear_grad")

    def _trained(self, method):
        if self._optimizer is None:
            raise UsageError(f"fleet.{method}: call fleet.distributed_optimizer(optimizer, strategy) first")
        return self._optimizer


class Util:
    """``fleet.util``: what the workers, the servers or all processes do together, and file shards."""

    def __init__(self, fleet):
        self._fleet = fleet

    def all_reduce(self, input, mode="sum", comm_world="worker"):
        """Collective: the arrays of the workers (or "server", "all") combined, in the shape of the input."""
        return np.array(self._fleet.role._all_reduce(np.asarray(input), mode, _domain(comm_world)))

    def all_gather(self, input, comm_world="worker"):
        """Collective: the values of the workers (or "server"; "all": workers, then servers), in their order."""
        return self._fleet.role._all_gather(input, _domain(comm_world))

    def barrier(self, comm_world="worker"):
        """Collective: wait for all workers (or "server", "all")."""
        self._fleet.role._barrier(_domain(comm_world))

    def get_file_shard(self, files):
        """This worker's files, as ``split_files``."""
        return self._fleet.split_files(files)

    def print_on_rank(self, message, rank_id):
        """Log a message on one worker."""
        if self._fleet.is_worker() and self._fleet.worker_index() == rank_id:
            notices.log().info("%s", message)


def _domain(name):
    if name not in ("worker", "server", "all"):
        raise UsageError(f"comm_world: expected worker, server or all, got {name!r}")
    return name


paddle_fleet = Fleet2()
