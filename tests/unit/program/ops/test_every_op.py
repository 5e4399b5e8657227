"""No op without a test: every registered type stands in some Case, or here with where it is tested."""

import importlib.util
from pathlib import Path

from fleet_mpi.program.graph import registry
from tests.unit.program.ops.checking import Case

HERE = Path(__file__).parent

# Ops that one Case cannot show, and the test that shows them.
ELSEWHERE = {
    "conditional_block": "program/ops/test_control_flow.py",
    **dict.fromkeys(("feed", "fetch"), "program/build/test_feed_fetch.py"),
    "fused_schedule": "program/build/test_schedules.py",
    "cast_all": "program/engine/test_precision.py",
    "while": "program/ops/test_control_flow.py",
    "read_from_array": "program/ops/test_tensor_array.py",
    "write_to_array": "program/ops/test_tensor_array.py",
    "lod_array_length": "program/ops/test_tensor_array.py",
    **dict.fromkeys(("lod_rank_table", "max_sequence_len", "lod_tensor_to_array", "array_to_lod_tensor",
                     "shrink_rnn_memory", "reorder_lod_tensor_by_rank"), "program/layers/test_dynamic_rnn.py"),
    "recurrent": "program/layers/test_static_rnn.py",
    **dict.fromkeys(("split_lod_tensor", "merge_lod_tensor"), "program/layers/test_if_else.py"),
    "tensor_array_to_tensor": "program/ops/test_array_joining.py",
    "empty_array": "program/build/test_nested_gradients.py",
    "beam_search_decode": "program/ops/test_beam_search.py",
    "py_func": "program/ops/test_host_calls.py",
    "cholesky": "program/ops/test_linear_algebra.py",  # only symmetric changes show its gradient
    "load": "checkpoint/models/test_load_op.py",
    "assert": "program/ops/test_host_calls.py",
    "clip_rows": "program/ops/test_clipping.py",
    "merge_selected_rows": "program/ops/test_clipping.py",
    "get_tensor_from_selected_rows": "program/ops/test_positions.py",
    "cvm": "program/ops/test_click.py",  # what it calls a gradient is none
    "sparse_table_lookup": "program/ops/test_sparse_table.py",
    "distributed_lookup_table": "runtime/ops/test_lookup.py",
    **dict.fromkeys(("split_selected_rows", "split_ids"), "transpile/test_original_programs.py"),
    **dict.fromkeys(("send", "split_byref", "recv", "recv_rate", "send_barrier", "fetch_barrier", "fake_init",
                     "listen_and_serv"), "runtime/ops/test_parameter_server.py"),
    **dict.fromkeys(("c_allreduce_sum", "c_allgather_rows", "c_broadcast", "c_sync_comm_stream"),
                    "runtime/test_collective_sessions.py"),
    **dict.fromkeys(("gen_nccl_id", "c_gen_nccl_id", "c_comm_init"), "transpile/test_collective_modes.py"),
    **dict.fromkeys(("local_sgd_is_due", "local_sgd_adapt", "c_dgc_momentum", "sync_batch_norm"),
                    "runtime/ops/test_strategies.py"),
    **dict.fromkeys(("allreduce", "broadcast", "c_allgather", "c_reducescatter"),
                    "../mpi/inside/test_collective_layers.py"),
}


def cases():
    """Every Case that a module of this folder defines, however it is kept."""
    for path in sorted(HERE.glob("test_*.py")):
        if path.name != Path(__file__).name:
            spec = importlib.util.spec_from_file_location(f"cases_in_{path.stem}", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            for value in vars(module).values():
                yield from (one for one in (value if isinstance(value, (list, tuple)) else [value])
                            if isinstance(one, Case))


def test_every_op_has_a_case_and_every_gradient_is_checked():
    found = list(cases())
    shown = {case.type for case in found}
    differentiated = {case.type for case in found if case.grads}
    types = [type for type in registry.all_types() if not type.endswith("_grad")]
    missing = [type for type in types if type not in shown and type not in ELSEWHERE]
    unchecked = [type for type in types if registry.find(type).grad is not None
                 and type not in differentiated and type not in ELSEWHERE]
    assert not missing, f"ops without a Case: {missing}"
    assert not unchecked, f"ops whose gradient no Case checks: {unchecked}"


def test_what_is_said_to_be_tested_elsewhere_exists():
    assert not set(ELSEWHERE) - set(registry.all_types())
    for place in set(ELSEWHERE.values()):
        assert (HERE.parents[1] / place).is_file(), place
