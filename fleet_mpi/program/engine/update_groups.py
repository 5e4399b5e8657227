"""Updates that follow each other in a plan on a device become one call: a launch for all parameters, not one for each.

Knows calls only, not what they compute; which go together is for ``kernels.cuda.update_groups`` to say.
"""

import functools

from fleet_mpi.kernels.cuda.update_groups import grouped
from fleet_mpi.update_rules import RULES


def group_updates(ops, calls):
    """The ops and calls of a plan with each run of updates as few calls; a group stands under its first op."""
    made, run = [], []
    for op, call in [*zip(ops, calls), (None, None)]:
        if op is not None and op.type in RULES:
            run.append((op, call))
            continue
        made += _merged(run)
        run = []
        if op is not None:
            made.append((op, call))
    return [op for op, _ in made], [call for _, call in made]


def _merged(run):
    """The (op, call) pairs of a run of updates, those that go together as one."""
    if not _are_apart([op for op, _ in run]):
        return run
    together = {}
    for op, call in run:
        together.setdefault(_likeness(call), []).append((op, call))
    made = []
    for pairs in together.values():
        group = _one_call([call for _, call in pairs])
        made += pairs if group is None else [(pairs[0][0], group)]
    return made


def _are_apart(ops):
    """Whether no op reads or writes what another one writes: then their order is free."""
    writers = {name: op for op in ops for name in op.output_arg_names}
    return all(writers.get(name, op) is op for op in ops for name in op.input_arg_names + op.output_arg_names)


def _likeness(call):
    """Equal for calls that may go together: of one function with the same numbers."""
    if not isinstance(call, functools.partial):
        return id(call)
    return call.func, tuple(argument for argument in call.args if isinstance(argument, (bool, int, float)))


def _one_call(calls):
    if not isinstance(calls[0], functools.partial):
        return None
    return grouped(calls[0].func, [call.args for call in calls])
