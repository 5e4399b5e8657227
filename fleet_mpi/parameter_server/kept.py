"""What the servers of a job keep, by the names of the program that was trained. Knows names and shapes, no values."""

from typing import NamedTuple

import numpy as np

from fleet_mpi import update_rules
from fleet_mpi.errors import UsageError, nearest


class Kept(NamedTuple):
    """Where a variable of the program is: ``kind`` is "param", "state", "rate" or "counter".

    ``variable`` is the parameter (or the name of rate or counter), ``state`` the rule's own word for the state.
    """

    kind: str
    variable: str
    state: str = ""


class Contents:
    """All variables of a Description, dense ones and tables of rows alike."""

    def __init__(self, description):
        self.description = description
        self._variables = {one.name: one for one in (*description.placement.variables, *description.row_tables)}
        self._tables = {table.name: table for table in description.row_tables}

    def by_program_name(self, counters=()):
        """{variable of the program: Kept}. A rate is the servers' where they compute it, else the workers'."""
        if not self.description.keeps_states:
            return {variable: Kept("param", variable) for variable in self._variables}
        found = {name: Kept("counter", name) for name in counters}
        for variable in self._variables:
            recipe = self.recipe(variable)
            if recipe.rate not in self.description.rates:
                found[recipe.rate] = Kept("rate", recipe.rate)
            found |= {name: Kept("state", variable, state) for state, name in recipe.states}
            found[variable] = Kept("param", variable)
        return found

    def variable(self, name):
        """What is known of a variable: name, shape, dtype."""
        if name not in self._variables:
            raise UsageError(f"the servers keep no variable {name!r}; {nearest(name, self._variables)}")
        return self._variables[name]

    def recipe(self, name):
        """How a variable is updated."""
        return self._tables[name].recipe if name in self._tables else self.description.recipes[name]

    def shards(self, name):
        """The shards of a variable, in order: together they are the whole of it."""
        return self._tables[name].shards if name in self._tables else self.description.placement.of_variable(name)

    def state(self, variable, name):
        """The rule's State of this name."""
        rule = self.recipe(self.variable(variable).name).rule
        states = {state.name: state for state in update_rules.RULES[rule].states}
        if name not in states:
            raise UsageError(f"{variable} is updated by {rule}, which has no state {name!r}; {nearest(name, states)}")
        return states[name]

    def shape_and_dtype(self, kept):
        """Of a whole parameter or state."""
        variable = self.variable(kept.variable)
        if kept.kind == "param":
            return tuple(variable.shape), np.dtype(variable.dtype)
        state = self.state(kept.variable, kept.state)
        return tuple(variable.shape) if state.like_param else (1,), np.dtype(state.dtype or variable.dtype)
