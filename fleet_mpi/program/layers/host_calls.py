"""Layers that leave the program for the host: Print, py_func, Assert."""

from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.ops.host_calls import number_of


def Print(input, first_n=-1, message=None, summarize=20, print_tensor_name=True, print_tensor_type=True,
          print_tensor_shape=True, print_tensor_lod=True, print_phase="both"):
    """The same variable, described on stderr at every run (or the first ``first_n``)."""
    helper = LayerHelper("print", input=input)
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    helper.append_op("print", {"In": [helper.input()]}, {"Out": [out]}, {
        "first_n": first_n, "message": message or "", "summarize": summarize, "print_phase": print_phase.upper(),
        "print_tensor_name": print_tensor_name, "print_tensor_type": print_tensor_type,
        "print_tensor_shape": print_tensor_shape, "print_tensor_lod": print_tensor_lod})
    return out


def py_func(func, x, out, backward_func=None, skip_vars_in_backward_input=None):
    """Call ``func`` with the tensors of ``x``; what it returns goes into ``out``, variables that exist.

    ``backward_func`` gets x, out and out's gradients (but not the skipped variables) and returns x's.
    """
    helper = LayerHelper("py_func")
    helper.append_op("py_func", {"X": _variables(x)}, {"Out": _variables(out)}, {
        "forward_callable_id": number_of(func),
        "backward_callable_id": number_of(backward_func) if backward_func is not None else -1,
        "backward_skip_vars": [var.name for var in _variables(skip_vars_in_backward_input)]})
    return out


def _variables(given):
    if given is None:
        return []
    return [given] if isinstance(given, Variable) else list(given)


def Assert(cond, data=None, summarize=20, name=None):
    """Stop with an error that shows ``data``, unless ``cond`` holds."""
    LayerHelper("assert", name=name).append_op("assert", {"Cond": [cond], "Data": _variables(data)}, {},
                                               {"summarize": summarize})
