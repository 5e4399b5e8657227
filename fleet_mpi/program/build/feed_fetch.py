"""Feed and fetch ops of a program for inference, as ``fluid.io.prepend_feed_ops`` and ``append_fetch_ops`` make
them."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.types import VarType


def prepend_feed_ops(inference_program, feed_target_names, feed_holder_name="feed"):
    """Let a program begin with an op for every variable that is fed, in this order."""
    if not feed_target_names:
        return
    block = inference_program.global_block()
    holder = block.create_var(name=feed_holder_name, type=VarType.FEED_MINIBATCH, persistable=True)
    for column, name in enumerate(feed_target_names):
        if not block.has_var(name):
            raise UsageError(f"prepend_feed_ops: the program has no variable {name!r} to feed; is it part of what "
                             f"leads to the targets?")
        block._insert_op(column, "feed", {"X": [holder]}, {"Out": [block.var(name)]}, {"col": column})


def append_fetch_ops(inference_program, fetch_target_names, fetch_holder_name="fetch"):
    """Let a program end with an op for every variable that is fetched, in this order."""
    block = inference_program.global_block()
    holder = block.create_var(name=fetch_holder_name, type=VarType.FETCH_LIST, persistable=True)
    for column, name in enumerate(fetch_target_names):
        block.append_op("fetch", {"X": [block.var(name)]}, {"Out": [holder]}, {"col": column})


def has_feed_operators(block, feed_targets, feed_holder_name="feed"):
    """Whether a block has a feed op for every target; UsageError where it has them for others."""
    found = [op.output("Out")[0] for op in block.ops if op.type == "feed" and op.input("X") == [feed_holder_name]]
    return _has("feed", found, list(feed_targets))


def has_fetch_operators(block, fetch_targets, fetch_holder_name="fetch"):
    """Whether a block has a fetch op for every target; UsageError where it has them for others."""
    found = [op.input("X")[0] for op in block.ops if op.type == "fetch" and op.output("Out") == [fetch_holder_name]]
    return _has("fetch", found, [getattr(one, "name", one) for one in fetch_targets])


def _has(kind, found, wanted):
    strangers = sorted(set(found) - set(wanted))
    if strangers and wanted:
        raise UsageError(f"the program has {kind} ops for {strangers}, which are not among {wanted}")
    return bool(found)
