"""A mode of one's own: synchronous rounds, but only after every second step; what is between is dropped."""

from fleet_mpi.modes.base import Mode
from fleet_mpi.modes.sync import SyncServer


class EveryOtherWorker:
    """The worker half."""

    options = ()

    def __init__(self, client, workers=1):
        self.client, self.steps = client, 0

    def after_backward(self, rows=()):
        """Exchange if it is this step's turn."""
        self.steps += 1
        if self.steps % 2 == 0:
            self.client.collect(self.client.push_pull(rows))

    def restart(self):
        """Nothing is kept."""

    def finish(self):
        """Nothing is left to send."""


MODE = Mode("every_other", EveryOtherWorker, SyncServer, lambda config: False, {}, has_rounds=True, in_step=True)
