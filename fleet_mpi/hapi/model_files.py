"""The files of a model: ``<path>.pdparams`` and ``<path>.pdopt`` to train on, or a model for inference.

Parameters go by their path in the network, so that another network with the same layers takes them.
"""

import os

import numpy as np

from fleet_mpi import notices
from fleet_mpi.checkpoint import saving
from fleet_mpi.checkpoint.objects import load, save
from fleet_mpi.errors import CheckpointMissing, UsageError

PARAMETERS, OPTIMIZER = ".pdparams", ".pdopt"


def save_training(path, network, optimizer):
    """Write the parameters, and the optimizer's state where there is one."""
    save(network.state_dict(), path + PARAMETERS)
    state = optimizer.state_dict() if optimizer is not None else {}
    if state:
        save(state, path + OPTIMIZER)


def save_for_inference(path, made, executor):
    """Write ``<path>.pdmodel`` and ``<path>.pdiparams`` of the programs for prediction."""
    folder, name = os.path.split(path)
    block = made.program.global_block()
    saving.save_inference_model(folder or ".", made.inputs, [block.var(output) for output in made.outputs], executor,
                                made.program, name + ".pdmodel", name + ".pdiparams")


def load_training(path, network, optimizer, skip_mismatch, reset_optimizer):
    """Read them; all parameters must fit, unless those that do not are to be passed over."""
    path = path.removesuffix(PARAMETERS)
    if not os.path.isfile(path + PARAMETERS):
        raise CheckpointMissing(f"Model.load: there is no {path + PARAMETERS}; give the path that model.save was given")
    found = load(path + PARAMETERS)
    wrong = {name: _problem(found.get(name), have) for name, have in network.state_dict().items()}
    wrong = {name: problem for name, problem in wrong.items() if problem}
    if wrong and not skip_mismatch:
        raise UsageError(f"Model.load: {path + PARAMETERS} does not fit the network: "
                         + "; ".join(f"{name} {problem}" for name, problem in sorted(wrong.items()))
                         + ": load with skip_mismatch=True to keep their values")
    for name, problem in sorted(wrong.items()):
        notices.log().warning("Model.load: %s %s: its value stays", name, problem)
    network.set_state_dict({**network.state_dict(), **{name: found[name] for name in found if name not in wrong}})
    if optimizer is not None and not reset_optimizer and os.path.isfile(path + OPTIMIZER):
        optimizer.set_state_dict(load(path + OPTIMIZER))


def _problem(found, have):
    if found is None:
        return "is not in the file"
    return "" if found.shape == np.asarray(have).shape else (
        f"is {list(found.shape)} in the file, {list(np.asarray(have).shape)} in the network")
