"""``fluid.data_feeder``: from lists of samples to feeds; the checks with which layers of a script's own begin."""

from fleet_mpi.data.feeder import DataFeeder
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.graph.types import as_dtype as convert_dtype
from fleet_mpi.program.graph.variable import Variable as _Variable


def check_variable_and_dtype(input, input_name, expected_dtype, op_name, extra_message=""):
    """A TypeError unless this is a variable of one of the element types."""
    check_type(input, input_name, _Variable, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)


def check_type(input, input_name, expected_type, op_name, extra_message=""):
    """A TypeError unless this is an instance of the class, or of one of the classes."""
    if not isinstance(input, expected_type):
        raise TypeError(
            f"{op_name}: {input_name!r} must be {expected_type}, got {type(input)}. {extra_message}".strip())


def check_dtype(input_dtype, input_name, expected_dtype, op_name, extra_message=""):
    """A TypeError unless this is one of the element types, given by name."""
    expected = [expected_dtype] if isinstance(expected_dtype, str) else list(expected_dtype)
    if convert_dtype(input_dtype) not in map(convert_dtype, expected):
        raise TypeError(f"{op_name}: the element type of {input_name!r} must be one of "
                        f"{', '.join(map(str, expected))}, got {convert_dtype(input_dtype)}. {extra_message}".strip())


__getattr__ = _missing_name("paddle.fluid.data_feeder", globals())
