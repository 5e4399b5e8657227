"""Models for inference: ``__model__`` (program/serialize.py has its format) and the parameter files."""

import os

from fleet_mpi.checkpoint.replacing import replacing
from fleet_mpi.checkpoint.variables import is_persistable, load_vars, save_vars
from fleet_mpi.errors import CheckpointDamaged, UsageError
from fleet_mpi.program.program import default_main_program, prune
from fleet_mpi.program.serialize import parse, program_to_bytes
from fleet_mpi.program.variable import Variable

MODEL = "__model__"


def save_inference_model(dirname, feeded_var_names, target_vars, executor, main_program=None,
                         model_filename=None, params_filename=None, export_for_deployment=True,
                         program_only=False):
    """Save the part of a program that leads from the fed variables to the targets, and its parameters.

    Returns the names of the targets.
    """
    pruned, content, names = model_for(feeded_var_names, target_vars, main_program)
    with replacing(os.path.join(dirname, model_filename or MODEL)) as stream:
        stream.write(content)
    if not program_only:
        save_vars(executor, dirname, pruned, predicate=is_persistable, filename=params_filename)
    return names


def model_for(feeded_var_names, target_vars, main_program=None):
    """(the pruned program, the content of its file, the targets' names) of a model for inference."""
    feeds = [feeded_var_names] if isinstance(feeded_var_names, str) else list(feeded_var_names)
    targets = [target_vars] if isinstance(target_vars, Variable) else list(target_vars)
    program = getattr(main_program, "program", main_program) or default_main_program()
    names = [one if isinstance(one, str) else one.name for one in targets]
    pruned = prune(program.clone(for_test=True), names, feeds)
    _require_fed(pruned, feeds, names)
    return pruned, program_to_bytes(pruned, {"feeds": feeds, "fetches": names}), names


def load_inference_model(dirname, executor, model_filename=None, params_filename=None, pserver_endpoints=None):
    """[program, names to feed, variables to fetch] of a saved model; its parameters go into the global scope."""
    path = os.path.join(dirname, model_filename or MODEL)
    if not os.path.isfile(path):
        raise CheckpointDamaged(f"{path}: no such file; is {dirname!r} what save_inference_model wrote?")
    with open(path, "rb") as stream:
        program, extra = parse(stream.read())
    load_vars(executor, dirname, program, predicate=is_persistable, filename=params_filename)
    block = program.global_block()
    return [program, list(extra["feeds"]), [block.var(name) for name in extra["fetches"]]]


def _require_fed(program, feeds, targets):
    """Raise where the targets need data that ``feeds`` does not name."""
    read = {name for op in program.global_block().ops for name in op.input_arg_names}
    made = {name for op in program.global_block().ops for name in op.output_arg_names}
    missing = sorted(name for name in read - made - set(feeds)
                     if not program.global_block()._var_recursive(name).persistable)
    if missing:
        raise UsageError(f"save_inference_model: {targets} depend on {missing}, which are neither in "
                         f"feeded_var_names {list(feeds)} nor saved")
