"""Which ops of a program must run for a fetch list, and which variables each of them needs first."""

from fleet_mpi.program.graph.operator import Operator
from fleet_mpi.program.graph.program import outside_names
from fleet_mpi.program.graph.registry import find


def body_of(op):
    """The nested block of a control-flow op, or None."""
    index = op.attrs.get("sub_block")
    return None if index is None else op.block.program.blocks[index]


def reads_of(op):
    """The variables an op needs before it runs; of control flow, also those its body takes from around it."""
    if "sub_block" not in op.attrs:
        return op.input_arg_names
    given = op.input_arg_names
    return given + sorted(outside_names(op.block.program, op).difference(given))


def live_ops(program, fetches):
    """The ops of block 0 that lead to a fetch, a persistable variable or an effect."""
    block = program.global_block()
    wanted, kept = set(fetches), []
    for op in reversed([*block.ops, *_made_for(program, fetches)]):
        if find(op.type).traits.get("by_executor"):
            continue
        if wanted.intersection(op.output_arg_names) or has_effect(op):
            kept.append(op)
            wanted.update(reads_of(op))
            if "sub_block" in op.attrs:
                # A body may leave a variable as it was, so who wrote it before is needed too.
                wanted.update(op.output_arg_names)
    return kept[::-1]


def _made_for(program, fetches):
    """The ops that a program does not show, as far as what they make is fetched."""
    block, made = program.global_block(), program.attachment.made_when_fetched
    return [Operator(block, made[name], {}, {"Out": [name]}, {}) for name in sorted(made) if name in fetches]


def has_effect(op):
    """Whether an op must run even if no op reads what it writes."""
    if find(op.type).traits.get("effect"):
        return True
    for name in op.output_arg_names:
        var = op.block.find_var(name)
        if var is not None and var.persistable:
            return True
    body = body_of(op)
    return body is not None and any(has_effect(inner) for inner in body.ops)


def is_dynamic(ops):
    """Whether some op's output shapes depend on values."""
    for op in ops:
        body = body_of(op)
        if find(op.type).traits.get("dynamic") or body is not None and is_dynamic(body.ops):
            return True
    return False
