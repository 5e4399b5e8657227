"""CompiledProgram, ParallelExecutor and their strategies, as far as they mean something in one process.

A plan compiles every program anyway; what is set here is kept, checked, and read by collective mode.
"""

import copy
import enum

from fleet_mpi.errors import UnknownName, UsageError, nearest, not_built
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace, CUDAPlace
from fleet_mpi.program.graph.program import Program, default_main_program
from fleet_mpi.program.graph.sync_batch_norm import synchronise_batch_norm


class ReduceStrategy(enum.IntEnum):
    """How gradients of several devices are combined."""

    AllReduce = 0
    Reduce = 1


class GradientScaleStrategy(enum.IntEnum):
    """What the loss gradient starts with."""

    CoeffNumDevice = 0
    One = 1
    Customized = 2


class Options:
    """Base of strategies: known attributes only, so that a misspelt one is an error."""

    defaults = {}

    def __init__(self):
        self.__dict__.update(copy.deepcopy(self.defaults))  # each has lists of its own

    def __setattr__(self, name, value):
        if name not in self.defaults:
            raise UnknownName(f"{type(self).__name__} has no option {name!r}; {nearest(name, self.defaults)}")
        self.__dict__[name] = value

    def __repr__(self):
        changed = {name: value for name, value in self.__dict__.items()
                   if name not in self.defaults or value != self.defaults[name]}
        return f"{type(self).__name__}({changed})"


class BuildStrategy(Options):
    """Options of how a program is compiled."""

    ReduceStrategy = ReduceStrategy
    GradientScaleStrategy = GradientScaleStrategy
    defaults = dict(
        reduce_strategy=ReduceStrategy.AllReduce, gradient_scale_strategy=GradientScaleStrategy.CoeffNumDevice,
        debug_graphviz_path="", enable_sequential_execution=False, remove_unnecessary_lock=True,
        fuse_elewise_add_act_ops=False, fuse_bn_act_ops=False, fuse_bn_add_act_ops=True,
        fuse_relu_depthwise_conv=False, fuse_broadcast_ops=False, fuse_all_optimizer_ops=False,
        fuse_all_reduce_ops=None, sync_batch_norm=False, memory_optimize=None, enable_inplace=None,
        cache_runtime_context=False, enable_backward_optimizer_op_deps=True, enable_auto_fusion=False,
        enable_addto=False, num_trainers=1, trainer_id=0, trainers_endpoints=[], nccl_comm_num=1,
        use_hierarchical_allreduce=False, hierarchical_allreduce_inter_nranks=0, async_mode=False,
        mkldnn_enabled_op_types=set(), is_distribution=False)
    _finalize_strategy_and_create_passes = not_built(
        "BuildStrategy._finalize_strategy_and_create_passes",
        "programs are not changed by passes; batches are merged by "
        "fluid.optimizer.GradientMergeOptimizer")


class ExecutionStrategy(Options):
    """Options of how a compiled program is run."""

    ExecutorType = enum.IntEnum("ExecutorType", {"Default": 0, "Experimental": 1})
    defaults = dict(num_threads=0, num_iteration_per_drop_scope=100, num_iteration_per_run=1,
                    use_thread_barrier=False, allow_op_delay=False, use_experimental_executor=False,
                    dry_run=False, use_cuda=False)


class CompiledProgram:
    """A program with strategies; the executor runs it like the program itself."""

    def __init__(self, program_or_graph, build_strategy=None):
        if not isinstance(program_or_graph, Program):
            raise UsageError(f"CompiledProgram: expected a Program, got {type(program_or_graph).__name__}")
        self.program = self._program = program_or_graph
        self.build_strategy = build_strategy
        self.exec_strategy = None
        self.loss_name = None
        self.places = None
        self._is_inference, self._predictor = False, None

    def with_data_parallel(self, loss_name=None, build_strategy=None, exec_strategy=None,
                           share_vars_from=None, places=None):
        """Note strategies; in one process there is one device, and every step uses the whole batch.

        A program of a worker among others (without servers) is changed where batch norms shall see all their batches.
        """
        self.loss_name = loss_name
        self.build_strategy = build_strategy or self.build_strategy or BuildStrategy()
        if self.program._is_distributed and self.program._distribution is None:
            synchronise_batch_norm(self.program, marked_only=not self.build_strategy.sync_batch_norm)
        self.exec_strategy = exec_strategy or ExecutionStrategy()
        self.places = places
        return self

    def _with_inference_optimize(self, config):
        """Let a predictor run the model of a ``core.NativeConfig``: ``exe.run(compiled, feed=[PaddleTensor, ...])``."""
        self._is_inference, self._predictor = True, config.predictor()
        return self

    @property
    def runs_at_once(self):
        """How many steps one ``Executor.run`` makes (``ExecutionStrategy.num_iteration_per_run``)."""
        return self.exec_strategy.num_iteration_per_run if self.exec_strategy is not None else 1


class ParallelExecutor:
    """The oldest way to run on several devices: a program, its strategies and an executor in one."""

    def __init__(self, use_cuda, loss_name=None, main_program=None, share_vars_from=None, exec_strategy=None,
                 build_strategy=None, num_trainers=1, trainer_id=0, scope=None):
        self._compiled = CompiledProgram(main_program or default_main_program()).with_data_parallel(
            loss_name, build_strategy, exec_strategy, share_vars_from)
        self._scope = scope
        self._executor = Executor(CUDAPlace(0) if use_cuda else CPUPlace())

    @property
    def device_count(self):
        """One: a rank has one device."""
        return 1

    def run(self, fetch_list, feed=None, feed_dict=None, return_numpy=True):
        """One step; ``feed`` may be a list with one dictionary per device."""
        return self._executor.run(self._compiled, feed=feed if feed is not None else feed_dict,
                                  fetch_list=fetch_list, scope=self._scope, return_numpy=return_numpy)

    def drop_local_exe_scopes(self):
        """Forget compiled plans and their memory."""
        self._executor.close()
