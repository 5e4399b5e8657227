"""What a network is fed with, where the script does not describe it: as its first batch has it.

In eager mode, which most scripts with ``paddle.Model`` are written for, descriptions are left out.
"""

import inspect

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.program.layers.input_spec import InputSpec


def as_specs(given, what):
    """A list of descriptions from what ``Model`` takes for inputs and labels: one, a list, a dictionary or None."""
    if given is None:
        return None
    listed = list(given.values()) if isinstance(given, dict) else given
    listed = list(listed) if isinstance(listed, (list, tuple)) else [listed]
    if not all(hasattr(one, "shape") and hasattr(one, "dtype") for one in listed):
        raise UsageError(f"Model: expected {what} as paddle.static.InputSpec or a list of them, got {given!r:.100}")
    return [one if isinstance(one, InputSpec) else InputSpec.from_tensor(one) for one in listed]


def number_of_inputs(network):
    """How many of a sample's fields the network takes: the arguments of its forward that have no default."""
    parameters = list(inspect.signature(network.forward).parameters.values())
    named = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if any(one.kind == one.VAR_POSITIONAL for one in parameters) or not named:
        raise UsageError(f"Model: {type(network).__name__}.forward does not say how many inputs it takes; give "
                         f"paddle.Model(network, inputs=[InputSpec(...), ...])")
    return max(1, sum(one.default is one.empty for one in named))


def described(arrays, prefix):
    """Descriptions of arrays: any number of samples, floats of 32 bits."""
    return [InputSpec([None, *np.shape(one)[1:]], _element(np.asarray(one)), f"{prefix}_{i}")
            for i, one in enumerate(arrays)]


def _element(array):
    return "float32" if array.dtype == np.float64 else array.dtype
