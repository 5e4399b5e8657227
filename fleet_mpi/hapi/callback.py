"""``Callback``: what a script can do at each moment of a model's training; and the list of those that are called."""


class Callback:
    """Base of all: a subclass overrides the moments it cares about.

    ``self.model`` is the Model, ``self.params`` has batch_size, epochs, steps, verbose and the names of metrics.
    """

    model, params = None, {}

    def set_params(self, params):
        """Take the settings of a fit, evaluate or predict."""
        self.params = params

    def set_model(self, model):
        """Take the model."""
        self.model = model

    def on_train_begin(self, logs=None):
        """Before the first epoch."""

    def on_train_end(self, logs=None):
        """After the last epoch."""

    def on_eval_begin(self, logs=None):
        """Before an evaluation; ``logs`` has its steps and the names of metrics."""

    def on_eval_end(self, logs=None):
        """After an evaluation; ``logs`` has loss and metrics."""

    def on_predict_begin(self, logs=None):
        """Before a prediction."""

    def on_predict_end(self, logs=None):
        """After a prediction."""

    def on_epoch_begin(self, epoch, logs=None):
        """Before an epoch, counted from 0."""

    def on_epoch_end(self, epoch, logs=None):
        """After an epoch; ``logs`` are those of its last batch."""

    def on_train_batch_begin(self, step, logs=None):
        """Before a batch of training."""

    def on_train_batch_end(self, step, logs=None):
        """After a batch of training; ``logs`` has loss, metrics and batch_size."""

    def on_eval_batch_begin(self, step, logs=None):
        """Before a batch of evaluation."""

    def on_eval_batch_end(self, step, logs=None):
        """After a batch of evaluation; ``logs`` has loss, metrics and batch_size."""

    def on_predict_batch_begin(self, step, logs=None):
        """Before a batch of prediction."""

    def on_predict_batch_end(self, step, logs=None):
        """After a batch of prediction."""


class CallbackList:
    """Callbacks that are called one after the other."""

    def __init__(self, callbacks=None):
        self.callbacks = list(callbacks or ())

    def append(self, callback):
        """Add one at the end."""
        self.callbacks.append(callback)

    def __iter__(self):
        return iter(self.callbacks)

    def set_params(self, params):
        """Give all these settings."""
        self._call("set_params", params)

    def set_model(self, model):
        """Give all this model."""
        self._call("set_model", model)

    def on_begin(self, mode, logs=None):
        """A training, evaluation or prediction begins."""
        self._call(f"on_{mode}_begin", logs)

    def on_end(self, mode, logs=None):
        """It ends."""
        self._call(f"on_{mode}_end", logs)

    def on_epoch_begin(self, epoch=None, logs=None):
        """An epoch begins."""
        self._call("on_epoch_begin", epoch, logs)

    def on_epoch_end(self, epoch=None, logs=None):
        """An epoch ends."""
        self._call("on_epoch_end", epoch, logs)

    def on_batch_begin(self, mode, step=None, logs=None):
        """A batch begins."""
        self._call(f"on_{mode}_batch_begin", step, logs)

    def on_batch_end(self, mode, step=None, logs=None):
        """A batch ends."""
        self._call(f"on_{mode}_batch_end", step, logs)

    def _call(self, moment, *args):
        for one in self.callbacks:
            getattr(one, moment)(*args)
