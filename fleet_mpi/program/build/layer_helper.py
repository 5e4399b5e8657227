"""LayerHelper: what every layer needs to add its ops, parameters and activation to the default programs."""

from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.build.initializers import default_for
from fleet_mpi.program.build.param_attr import as_param_attr, named
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.graph.variable import Variable


class LayerHelper:
    """One layer call: its name (``fc_0``) and the keyword arguments it was given."""

    def __init__(self, layer_type, **kwargs):
        self.layer_type = layer_type
        self.kwargs = kwargs
        self.name = kwargs.get("name") or unique_name.generate(layer_type)

    @property
    def main_program(self):
        """The program layers write into."""
        return default_main_program()

    @property
    def startup_program(self):
        """The program that initialises parameters."""
        return default_startup_program()

    @property
    def block(self):
        """The block layers write into now."""
        return self.main_program.current_block()

    @property
    def param_attr(self):
        """The layer's weight attribute."""
        return as_param_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self):
        """The layer's bias attribute; False for no bias."""
        return as_param_attr(self.kwargs.get("bias_attr"))

    def append_op(self, *args, **kwargs):
        """Add an op to the current block."""
        return self.block.append_op(*args, **kwargs)

    def input(self, name="input"):
        """The one input variable of this name."""
        given = self.kwargs[name]
        given = given[0] if isinstance(given, (list, tuple)) and len(given) == 1 else given
        return self.require(given, name)

    def multiple_input(self, name="input"):
        """The input as a list of variables."""
        given = self.kwargs[name]
        return [self.require(one, name) for one in (given if isinstance(given, (list, tuple)) else [given])]

    def require(self, given, argument):
        """The argument, if it is a variable; else an error that names layer and argument."""
        if not isinstance(given, Variable):
            raise UsageError(f"{self.layer_type}: argument {argument!r} must be a variable of the program, "
                             f"got {type(given).__name__}")
        return given

    def input_dtype(self, name="input"):
        """The element type shared by all inputs."""
        kinds = {one.dtype for one in self.multiple_input(name)}
        if len(kinds) > 1:
            raise ProgramError(f"{self.layer_type} {self.name!r}: inputs of different types {sorted(kinds)}")
        return kinds.pop()

    def create_parameter(self, attr, shape, dtype="float32", is_bias=False, default_initializer=None,
                         stop_gradient=False):
        """A parameter in the main program, with its initialiser op in the startup program."""
        attr = as_param_attr(attr)
        if attr is False:
            return None
        attr = named(attr, self.name, "b" if is_bias else "w")
        if attr.make is not None:
            return attr.make(self, shape, dtype, is_bias, default_initializer)
        initializer = attr.initializer or default_for(is_bias, default_initializer)
        fields = dict(name=attr.name, shape=[int(size) for size in shape], dtype=dtype, **attr.fields())
        startup = self.startup_program.global_block()
        if attr.name not in startup.vars:
            startup.create_parameter(initializer=initializer, **fields)
        return self.main_program.global_block().create_parameter(**fields)

    def create_variable_for_type_inference(self, dtype="float32", stop_gradient=False):
        """A temporary ``fc_0.tmp_0``; its shape comes from the op that writes it."""
        return self.block.create_var(name=unique_name.generate(f"{self.name}.tmp"), dtype=dtype,
                                     stop_gradient=stop_gradient)

    create_tmp_variable = create_variable_for_type_inference

    def create_variable(self, **fields):
        """A variable of the current block."""
        return self.block.create_var(**fields)

    def create_global_variable(self, persistable=False, **fields):
        """A variable of block 0, under a name of its own unless one is given."""
        fields.setdefault("name", unique_name.generate(f"{self.name}.tmp"))
        return self.main_program.global_block().create_var(persistable=persistable, **fields)

    def create_or_get_global_variable(self, name, **fields):
        """The variable of block 0 with this name, made if it does not exist; and whether it was made."""
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name), False
        return block.create_var(name=name, **fields), True

    def set_variable_initializer(self, var, initializer):
        """Initialise a persistable variable in the startup program."""
        twin = self.startup_program.global_block().create_var(
            name=var.name, shape=var.shape, dtype=var.dtype, persistable=True, type=var.type)
        initializer(twin, self.startup_program.global_block())
        return twin

    def append_bias_op(self, input_var, dim_start=1, dim_end=None):
        """Add a bias over the dimensions from ``dim_start`` on; returns the sum."""
        if self.bias_attr is False:
            return input_var
        size = list(input_var.shape[dim_start:dim_end])
        bias = self.create_parameter(self.bias_attr, size, input_var.dtype, is_bias=True)
        out = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op("elementwise_add", {"X": [input_var], "Y": [bias]}, {"Out": [out]}, {"axis": dim_start})
        return out

    def append_activation(self, input_var):
        """Apply the activation asked for by ``act`` (a name, or a dictionary with attributes)."""
        act = self.kwargs.get("act")
        if act is None:
            return input_var
        attrs = {} if isinstance(act, str) else dict(act)
        act_type = act if isinstance(act, str) else attrs.pop("type")
        out = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op(act_type, {"X": [input_var]}, {"Out": [out]}, attrs)
        return out
