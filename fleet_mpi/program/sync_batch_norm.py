"""Batch norm by the statistics of all workers' batches: the same ops under another name, which collective training knows.

Changes programs in place.
"""

KINDS = {"batch_norm": "sync_batch_norm", "batch_norm_grad": "sync_batch_norm_grad"}


def synchronise_batch_norm(program):
    """Let the batch norms of a minimised program see all workers' batches; returns how many there are."""
    ops = [op for block in program.blocks for op in block.ops]
    for op in ops:
        op.type = KINDS.get(op.type, op.type)
    program.touch()
    return sum(op.type == KINDS["batch_norm"] for op in ops)
