"""The worker half of modes that exchange after every step; when the answer comes is the server half's business."""


class EachStepWorker:
    """Pushes, and waits for the parameters: the round's (sync), or the servers' when this worker may go on."""

    options = ()

    def __init__(self, client, workers=1):
        self.client = client

    def after_backward(self, rows=()):
        """One exchange; the parameters are the servers' when it returns."""
        self.client.collect(self.client.push_pull(rows))

    def restart(self):
        """The parameters were replaced from outside: nothing is kept of the old ones."""

    def finish(self):
        """Nothing is left to send."""
