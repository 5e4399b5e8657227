"""``op.desc``: an op as the original's compiled half shows it, where all is asked for by methods."""


class OperatorDesc:
    """A view of an Operator; changes go through it."""

    def __init__(self, op):
        self._op = op

    def type(self):
        """The op's type."""
        return self._op.type

    def input(self, name):
        """The variables read in a slot."""
        return self._op.input(name)

    def output(self, name):
        """The variables written in a slot."""
        return self._op.output(name)

    def input_names(self):
        """The slots that are read."""
        return self._op.input_names

    def output_names(self):
        """The slots that are written."""
        return self._op.output_names

    def input_arg_names(self):
        """All variables read."""
        return self._op.input_arg_names

    def output_arg_names(self):
        """All variables written."""
        return self._op.output_arg_names

    def attr(self, name):
        """One attribute."""
        return self._op.attr(name)

    def attr_names(self):
        """The names of the attributes."""
        return self._op.attr_names

    def has_attr(self, name):
        """Whether an attribute is set."""
        return self._op.has_attr(name)

    def _set_attr(self, name, value):
        self._op._set_attr(name, value)

    def _rename_input(self, old, new):
        self._op._rename_input(old, new)

    def _rename_output(self, old, new):
        self._op._rename_output(old, new)
