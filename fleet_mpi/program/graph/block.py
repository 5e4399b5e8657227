"""Block: variables and ops in order. Block 0 is the program's; others are bodies of control flow."""

from fleet_mpi.errors import ProgramError, nearest
from fleet_mpi.program.graph import element_types, registry, unique_name
from fleet_mpi.program.graph.operator import ROLE, ROLE_VAR, SCOPE, Operator
from fleet_mpi.program.graph.variable import Parameter, Variable, as_shape


class Block:
    """A list of ops and the variables they name; a nested block also sees its parent's variables."""

    def __init__(self, program, idx, parent_idx=-1, forward_block_idx=-1):
        self.program = program
        self.idx = idx
        self.parent_idx = parent_idx
        self.forward_block_idx = forward_block_idx
        self.vars = {}
        self.ops = []

    @property
    def parent(self):
        """The enclosing block, or None for block 0."""
        return self.program.blocks[self.parent_idx] if self.parent_idx >= 0 else None

    def var(self, name):
        """The variable of this name in this very block."""
        if name not in self.vars:
            raise ProgramError(f"block {self.idx} has no variable {name!r}; {nearest(name, self.vars)}")
        return self.vars[name]

    def has_var(self, name):
        """Whether this very block has the variable."""
        return name in self.vars

    def find_var(self, name):
        """The variable in this block or an enclosing one, or None."""
        block = self
        while block is not None:
            if name in block.vars:
                return block.vars[name]
            block = block.parent
        return None

    def _var_recursive(self, name):
        found = self.find_var(name)
        if found is None:
            raise ProgramError(f"no variable {name!r} in block {self.idx} or around it; "
                               f"{nearest(name, self.vars)}")
        return found

    def _find_var_recursive(self, name):
        return self.find_var(name)

    def create_var(self, name=None, **fields):
        """Enter a variable; the existing one if the name is taken, which must not have been given another shape."""
        name = name or unique_name.generate("_generated_var")
        if name in self.vars:
            _same_shape(self.vars[name], fields.get("shape"))
            return self.vars[name]
        fields.pop("initializer", None)
        return self._enter(Variable(self, name, **fields))

    def create_parameter(self, name=None, initializer=None, **fields):
        """Enter a parameter into block 0; with an initializer, its op too (use it in startup programs)."""
        name = name or unique_name.generate("_param")
        home = self.program.global_block()
        if isinstance(home.vars.get(name), Parameter):
            param = home.vars[name]
            _same_shape(param, fields.get("shape"))
        else:
            param = home._enter(Parameter(home, name=name, **fields))
        if initializer is not None:
            initializer(param, home)
        return param

    def all_parameters(self):
        """The parameters of this block, in the order they were made."""
        return [var for var in self.vars.values() if isinstance(var, Parameter)]

    def iter_parameters(self):
        """Iterate over ``all_parameters``."""
        return iter(self.all_parameters())

    def _enter(self, var):
        self.vars[var.name] = var
        self.program.touch()
        return var

    def append_op(self, type, inputs=None, outputs=None, attrs=None, stop_gradient=False):
        """Add an op at the end; its outputs' shapes and types are inferred at once."""
        return self._insert(len(self.ops), type, inputs, outputs, attrs, stop_gradient)

    def _prepend_op(self, type, inputs=None, outputs=None, attrs=None):
        return self._insert(0, type, inputs, outputs, attrs)

    prepend_op = _prepend_op

    def _insert_op(self, index, type, inputs=None, outputs=None, attrs=None):
        return self._insert(index, type, inputs, outputs, attrs)

    def _insert(self, index, type, inputs, outputs, attrs, stop_gradient=False):
        definition = registry.find(type)
        op = Operator(self, type, inputs, outputs, {**definition.attrs, **(attrs or {})})
        op.attrs.setdefault(ROLE, int(self.program._op_role))
        if self.program._op_role_var:
            op.attrs.setdefault(ROLE_VAR, list(self.program._op_role_var))
        op.attrs.setdefault(SCOPE, unique_name.current_scope())
        if self.program._device:
            op.attrs.setdefault("op_device", self.program._device)
        definition.check_slots(op)
        definition.check_attrs(op)
        element_types.check(op)
        registry.infer_at_build(op)
        self.ops.insert(index, op)
        self.program.touch()
        if stop_gradient:
            for name in op.output_arg_names:
                self._var_recursive(name).stop_gradient = True
        return op

    def _remove_op(self, index):
        del self.ops[index]
        self.program.touch()

    def _remove_var(self, name):
        self.vars.pop(name, None)
        self.program.touch()

    def _rename_var(self, old, new):
        var = self.var(old)
        self.vars = {(new if name == old else name): one for name, one in self.vars.items()}
        var.name = new
        for block in self.program.blocks:
            if block is self or self._is_around(block) and old not in block.vars:
                for op in block.ops:
                    op._rename_everywhere(old, new)
        return var

    def _is_around(self, block):
        while block is not None and block is not self:
            block = block.parent
        return block is self

    def to_string(self, throw_on_error=True, with_details=False):
        """The block as text: its variables, then its ops, a line each."""
        head = [f"{{ // block {self.idx}" + (f", inside block {self.parent_idx}" if self.parent_idx >= 0 else "")]
        lines = [var.to_string() for var in self.vars.values()] + [""]
        lines += [op.to_string() for op in self.ops]
        return "\n".join(head + ["    " + line if line else "" for line in lines] + ["}"])

    __str__ = to_string
    __repr__ = to_string


def _same_shape(var, shape):
    if shape is not None and var._shape is not None and as_shape(shape, var.name) != var._shape:
        kind = "parameter" if isinstance(var, Parameter) else "variable"
        raise ProgramError(f"{kind} {var.name!r} exists with shape {var._shape}, but is asked for with "
                           f"{tuple(shape)}: give one of them another name")
