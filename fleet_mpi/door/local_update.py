"""The update that a worker makes itself, on its own copies, in modes whose servers only add (geo)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.parameter_server import norms
from fleet_mpi.parameter_server.tables.dense import DenseDescription
from fleet_mpi.placement import Variable, place
from fleet_mpi.update_rules import join_squares

if TYPE_CHECKING:
    from fleet_mpi.connections.worker import Flat
    from fleet_mpi.door.declaration import Declaration
    from fleet_mpi.door.rates import Rates
    from fleet_mpi.parameter_server.norms import Update


class LocalUpdate:
    """A worker's optimizer: a dense table as a lone server has it, over the worker's own flat arrays."""

    def __init__(self, declared: Declaration, rates: Rates, flat: Flat) -> None:
        self.all_rates, self.grads = rates, flat[1]
        self.rates = {name: np.zeros(1, dtype) for name, dtype in declared.rates.items()}
        self.line = np.zeros(len(self.rates))
        self.recipes = {one.name: one.recipe for one in declared.parameters}
        self._states = {name: (variable, state) for variable, recipe in self.recipes.items()
                        for state, name in recipe.states}
        placed = place([Variable(one.name, one.shape, one.dtype) for one in declared.parameters], 1)
        self.table = DenseDescription(placed, self.recipes).table(0, self.rates)
        self.table.params = flat[0]   # with one server its image lies as the worker's array does

    def states(self) -> dict[str, np.ndarray]:
        """{name of a state: its array}; those of one number are copies."""
        return {name: self.table.state(variable, 0, state) for name, (variable, state) in self._states.items()}

    def set_state(self, name: str, values: np.ndarray) -> None:
        """Take over a state."""
        variable, state = self._states[name]
        self.table.set_state(variable, 0, state, values)

    def update(self, step: int) -> None:
        """Change the parameters by the gradients, which are changed on the way."""
        self.all_rates.write(self.line, self.rates, step)
        for place_of, value in zip(self.rates.values(), self.line):
            place_of[0] = value
        contributions = [self.table.read(self.grads)]
        if self.table.needs_norms:
            _run(norms.update(self.table.gradients(contributions), self.recipes))
        else:
            self.table.update(contributions)


def _run(update: Update) -> None:
    """Drive an update that asks for norms: all that it asks for is here."""
    try:
        nodes = next(update)
        while True:
            nodes = update.send({name: join_squares(found) for name, found in nodes.items()})
    except StopIteration:
        pass
