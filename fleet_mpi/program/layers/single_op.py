"""How a layer that is one op adds it."""

from fleet_mpi.program.build.layer_helper import LayerHelper


def single_op(type, inputs, attrs=None, out="Out", also=(), name=None, layer=None, dtype=None):
    """Add one op and return its output variable ``out``; ``also`` names outputs that only its gradient needs.

    ``inputs`` maps slots to variables; None leaves an optional slot empty. ``layer`` is the layer's name
    where it differs from the op's.
    """
    helper = LayerHelper(layer or type, name=name)
    given = {slot: helper.require(var, slot) for slot, var in inputs.items() if var is not None}
    dtype = dtype or next(iter(given.values())).dtype
    made = helper.create_variable_for_type_inference(dtype)
    others = {slot: [helper.create_variable_for_type_inference(dtype, stop_gradient=True)] for slot in also}
    helper.append_op(type, {slot: [var] for slot, var in given.items()}, {out: [made], **others}, attrs)
    return made
