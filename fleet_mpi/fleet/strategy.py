"""DistributedStrategy (2.x): every switch of the original and its settings, with their defaults.

Holds and checks values only; what they do is decided where an optimizer is made distributed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.errors import UnknownName, UsageError, nearest
from fleet_mpi.program.engine.compiled import BuildStrategy, ExecutionStrategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

SWITCHES: dict[str, Any] = dict(
    a_sync=True, amp=False, recompute=False, localsgd=False, adaptive_localsgd=False, dgc=False,
    gradient_merge=False, lars=False, lamb=False, pipeline=False, sharding=False, elastic=False, auto=False,
    fp16_allreduce=False, fuse_all_reduce_ops=True, fuse_grad_size_in_MB=32, _fuse_grad_size_in_TFLOPS=50,
    last_comm_group_size_MB=1, sync_nccl_allreduce=True, nccl_comm_num=1, use_hierarchical_allreduce=False,
    hierarchical_allreduce_inter_nranks=1, sync_batch_norm=False, cudnn_exhaustive_search=False,
    conv_workspace_size_limit=512, cudnn_batchnorm_spatial_persistent=False,
    find_unused_parameters=False, tensor_parallel=False, calc_comm_same_stream=False, asp=False,
    fuse_grad_merge=False, semi_auto=False, adam_d2sum=False, auto_search=False, heter_ccl_mode=False,
    is_fl_ps_mode=False, with_coordinator=False, qat=False, without_graph_optimization=True, split_data=True,
    fuse_grad_size_in_num=8)

CONFIGS: dict[str, dict[str, Any]] = dict(
    # k_steps starts at 0, not -1: the original's default left a job without a runtime (B30).
    a_sync_configs=dict(
        k_steps=0, max_merge_var_num=1, send_queue_size=16, independent_recv_thread=False,
        min_send_grad_num_before_recv=1, thread_pool_size=1, send_wait_times=1, runtime_split_send_recv=False,
        launch_barrier=True, heter_worker_device_guard="cpu", lr_decay_steps=10, use_ps_gpu=0),
    amp_configs=dict(
        init_loss_scaling=32768.0, incr_every_n_steps=1000, decr_every_n_nan_or_inf=2, incr_ratio=2.0,
        decr_ratio=0.8, use_dynamic_loss_scaling=True, custom_white_list=[], custom_black_list=[],
        custom_black_varnames=[], use_pure_fp16=False, use_fp16_guard=True, use_optimizer_fp16=False,
        use_pure_bf16=False),
    recompute_configs=dict(checkpoints=[], enable_offload=False, checkpoint_shape=[], enable_tuning=False,
                           refined_ops_patterns=[]),
    localsgd_configs=dict(k_steps=1, begin_step=1),
    adaptive_localsgd_configs=dict(init_k_steps=1, begin_step=1),
    gradient_merge_configs=dict(k_steps=1, avg=True),
    dgc_configs=dict(rampup_begin_step=0, rampup_step=1, sparsity=[]),
    lars_configs=dict(lars_coeff=0.001, lars_weight_decay=0.0005, epsilon=0.0, exclude_from_weight_decay=[]),
    lamb_configs=dict(lamb_weight_decay=0.01, exclude_from_weight_decay=[]),
    sharding_configs=dict(
        fuse_broadcast_MB=32.0, sharding_group_size=8, sharding_segment_strategy="segment_broadcast_MB",
        segment_broadcast_MB=32.0, segment_anchors=[], sharding_degree=8, mp_degree=1, dp_degree=1, pp_degree=1,
        hybrid_dp=False, gradient_merge_acc_step=1, optimize_offload=False, optimize_cast=False,
        pp_allreduce_in_optimize=False, stage=1, enable_tuning=False, use_calc_stream=False),
    pipeline_configs=dict(micro_batch=1, micro_batch_size=1, accumulate_steps=1, schedule_mode="1F1B",
                          p2p_cache_shape=True, enable_partial_send_recv=True),
    hybrid_configs=dict(dp_degree=-1, mp_degree=1, pp_degree=1, sharding_degree=1, sep_degree=1,
                        order=["dp", "pp", "sharding", "sep", "mp"]),
    gradient_scale_configs=dict(scale_strategy="avg", scale_gradient=False),
    tensor_parallel_configs=dict(tensor_parallel_degree=1, tensor_init_seed=-1),
    qat_configs=dict(channel_wise_abs_max=True, weight_bits=8, activation_bits=8, not_quant_pattern=[], algo=None),
    trainer_desc_configs=dict(dump_fields_path="", dump_fields=[], dump_param=[], stat_var_names=[], trainer="",
                              device_worker="", local_sparse=[], remote_sparse=[]),
    fs_client_param=dict(uri="", user="", passwd="", hadoop_bin=""),
    sparse_table_configs=dict(), fleet_desc_configs=dict())


class DistributedStrategy:
    """How a job trains. Switches are attributes; ``*_configs`` take a dictionary of the keys to change.

    A wrong name or type is refused. Unlike in the original, ``a_sync`` leaves ``k_steps`` alone and a list
    given twice replaces the first (B30, B31 of the known faults).
    """

    def __init__(self) -> None:
        fields = {"values": dict(SWITCHES),
                  "configs": {name: dict(keys) for name, keys in CONFIGS.items()},
                  "build_strategy": BuildStrategy(), "execution_strategy": ExecutionStrategy()}
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        values, configs = self.__dict__.get("values", {}), self.__dict__.get("configs", {})
        if name in values:
            return values[name]
        if name in configs:
            return {key: list(one) if isinstance(one, list) else one for key, one in configs[name].items()}
        raise UnknownName(f"DistributedStrategy has no option {name!r}; {nearest(name, [*values, *configs])}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.values:
            self.values[name] = _checked(name, value, SWITCHES[name])
        elif name in self.configs:
            self._merge(name, value)
        elif name in ("build_strategy", "execution_strategy"):
            self.__dict__[name] = value
        else:
            raise UnknownName(f"DistributedStrategy has no option {name!r}; "
                              f"{nearest(name, [*self.values, *self.configs])}")

    def set_debug_opt(self, opt_info: Mapping[str, Any]) -> None:
        """Note what a debugging run would dump; nothing is dumped."""
        known = CONFIGS["trainer_desc_configs"]
        self.trainer_desc_configs = {key: value for key, value in opt_info.items() if key in known}

    def _merge(self, name: str, given: Any) -> None:
        if not isinstance(given, dict):
            raise UsageError(f"{name}: expected a dictionary, got {type(given).__name__}")
        known = CONFIGS[name]
        for key, value in given.items():
            if known and key not in known:
                raise UnknownName(f"{name} has no key {key!r}; {nearest(key, known)}")
            self.configs[name][key] = _checked(f"{name}[{key!r}]", value, known.get(key))

    def without(self, switches: Iterable[str]) -> DistributedStrategy:
        """A strategy like this one with some switches off."""
        made = DistributedStrategy()
        made.__dict__.update(values={**self.values, **dict.fromkeys(switches, False)},
                             configs={name: dict(keys) for name, keys in self.configs.items()},
                             build_strategy=self.build_strategy, execution_strategy=self.execution_strategy)
        return made

    def changed(self) -> dict[str, Any]:
        """{name: value} of the switches and settings that differ from their defaults."""
        found = {name: value for name, value in self.values.items() if value != SWITCHES[name]}
        for name, keys in self.configs.items():
            differs = {key: value for key, value in keys.items() if value != CONFIGS[name].get(key)}
            if differs:
                found[name] = differs
        return found

    def __repr__(self) -> str:
        lines = [f"    {name} = {value!r}" for name, value in sorted(self.changed().items())]
        return "DistributedStrategy(\n" + "\n".join(lines or ["    (all defaults)"]) + "\n)"


def _checked(name: str, value: Any, default: Any) -> Any:
    """The value, if it is of the default's type (an int may stand for a float)."""
    if default is None:
        return value
    if name.endswith("k_steps']") and isinstance(value, (int, float)) and value < 0:
        raise UsageError(f"{name}: expected a whole number from 0 up, got {value!r}")
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise UsageError(f"{name}: expected True or False, got {value!r}")
        return value
    if isinstance(default, (int, float)) and isinstance(value, (int, float)) and not isinstance(value, bool):
        return type(default)(value) if isinstance(default, float) else value
    if isinstance(default, list) and isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(default, str) and isinstance(value, str):
        return value
    raise UsageError(f"{name}: expected {type(default).__name__}, got {value!r}")
