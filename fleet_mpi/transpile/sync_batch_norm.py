"""Batch norm by the statistics of all workers' batches: the same ops under another name. Changes programs in place."""

KINDS = {"batch_norm": "sync_batch_norm", "batch_norm_grad": "sync_batch_norm_grad"}


def synchronise_batch_norm(program):
    """Let the batch norms of a minimised program see all workers' batches; returns how many there are."""
    found = [op for block in program.blocks for op in block.ops if op.type in KINDS]
    for op in found:
        op.type = KINDS[op.type]
    program.touch()
    return sum(op.type == "sync_batch_norm" for op in found)
