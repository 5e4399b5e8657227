"""How often a program has each op, and each pair of ops one behind the other."""

from collections import Counter

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.program import Program


def op_freq_statistic(program):
    """Two lists of (name, number), most frequent first: of op types, and of ``"a->b"`` where b reads what a wrote."""
    if not isinstance(program, Program):
        raise UsageError(f"op_freq_statistic: expected a Program, got {type(program).__name__}")
    single, pairs, writers = Counter(), Counter(), {}
    for op in program.global_block().ops:
        single[op.type] += 1
        pairs.update(f"{writers[name]}->{op.type}" for name in op.input_arg_names if name in writers)
        writers.update(dict.fromkeys(op.output_arg_names, op.type))
    return single.most_common(), pairs.most_common()
