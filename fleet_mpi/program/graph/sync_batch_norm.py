"""Batch norm by the statistics of all workers' batches: the same ops under another name, which collective training
knows.

Changes programs in place.
"""

KINDS = {"batch_norm": "sync_batch_norm", "batch_norm_grad": "sync_batch_norm_grad"}
MARK = "over_all_workers"  # attribute of a batch norm that a SyncBatchNorm layer added


def synchronise_batch_norm(program, marked_only=False):
    """Let the batch norms of a minimised program (or those marked) see all workers' batches; returns how many do."""
    ops = [op for block in program.blocks for op in block.ops if not marked_only or op.attrs.get(MARK)]
    changed = [op for op in ops if op.type in KINDS]
    for op in changed:
        op.type = KINDS[op.type]
    if changed:
        program.touch()
    return sum(op.type == KINDS["batch_norm"] for op in ops)


def has_marked(program):
    """Whether a layer asked for statistics over all workers."""
    return any(op.attrs.get(MARK) for block in program.blocks for op in block.ops)
