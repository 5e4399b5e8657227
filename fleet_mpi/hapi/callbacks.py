"""``paddle.callbacks``: checkpoints, learning rates, early ends, and which callbacks are there without being given."""

import math

from fleet_mpi import notices
from fleet_mpi.errors import UsageError
from fleet_mpi.hapi.callback import Callback, CallbackList
from fleet_mpi.hapi.progress import ProgBarLogger, say
from fleet_mpi.program.graph.structures import as_list
from fleet_mpi.program.optimizers.lr import LRScheduler as _Scheduler


def config_callbacks(callbacks=None, model=None, batch_size=None, epochs=None, steps=None, log_freq=2, verbose=2,
                     save_freq=1, save_dir=None, metrics=None, mode="train"):
    """The given callbacks, with those for progress, checkpoints and learning rates where none of the kind is given."""
    made = as_list(callbacks) if callbacks else []
    if verbose and not _has(made, ProgBarLogger):
        made.insert(0, ProgBarLogger(log_freq, verbose))
    if not _has(made, ModelCheckpoint):
        made.append(ModelCheckpoint(save_freq, save_dir))
    if not _has(made, LRScheduler):
        made.append(LRScheduler())
    for one in made:
        if isinstance(one, EarlyStopping):
            one.save_dir = save_dir
    calls = CallbackList(made)
    calls.set_model(model)
    calls.set_params({"batch_size": batch_size, "epochs": epochs, "steps": steps, "verbose": verbose,
                      "metrics": metrics or []})
    return calls


def _has(callbacks, kind):
    return any(isinstance(one, kind) for one in callbacks)


class ModelCheckpoint(Callback):
    """Saves the model as ``<save_dir>/<epoch>`` every ``save_freq`` epochs, and as ``<save_dir>/final``."""

    def __init__(self, save_freq=1, save_dir=None):
        super().__init__()
        self.save_freq, self.save_dir = save_freq, save_dir

    def on_epoch_end(self, epoch, logs=None):
        """Save, where this epoch's turn it is."""
        if epoch % self.save_freq == 0:
            self._save(epoch)

    def on_train_end(self, logs=None):
        """Save."""
        self._save("final")

    def _save(self, name):
        if self.save_dir:
            path = f"{self.save_dir}/{name}"
            say(f"save checkpoint at {path}")
            self.model.save(path)


class LRScheduler(Callback):
    """Moves the optimizer's learning-rate scheduler on, after every step or after every epoch."""

    def __init__(self, by_step=True, by_epoch=False):
        super().__init__()
        if by_step and by_epoch:
            raise UsageError("LRScheduler: expected by_step or by_epoch, got both")
        self.by_step, self.by_epoch = by_step, by_epoch

    def on_epoch_end(self, epoch, logs=None):
        """Move on, if by epoch."""
        if self.by_epoch:
            self._move_on()

    def on_train_batch_end(self, step, logs=None):
        """Move on, if by step."""
        if self.by_step:
            self._move_on()

    def _move_on(self):
        scheduler = getattr(self.model._optimizer, "_learning_rate", None)
        if isinstance(scheduler, _Scheduler):
            scheduler.step()


class _Watch(Callback):
    """Looks at one number of every evaluation, and counts how often in a row it was no better than the best so far."""

    def __init__(self, monitor, mode, patience, min_delta, verbose):
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise UsageError(f"{type(self).__name__}: expected mode auto, min or max, got {mode!r}")
        self.monitor, self.patience, self.verbose, self.min_delta = monitor, patience, verbose, abs(min_delta)
        self._sign = 1 if mode == "max" or mode == "auto" and "acc" in monitor else -1
        self._forget()

    def _forget(self, best=None):
        self.wait_epoch, self.best_value = 0, -self._sign * math.inf if best is None else best

    def _value(self, logs):
        """The number, or None where the evaluation has none of that name."""
        if self.monitor not in (logs or {}):
            notices.log().warning("%s: an evaluation gives %s, and no %r to look at", type(self).__name__,
                                  sorted(logs or ()), self.monitor)
            return None
        return float(as_list(logs[self.monitor])[0])

    def _is_better(self, value):
        """Whether a number is the best so far, which is noted."""
        better = self._sign * (value - self.best_value) > self.min_delta
        self.wait_epoch = 0 if better else self.wait_epoch + 1
        self.best_value = value if better else self.best_value
        return better

    def _say(self, text):
        if self.verbose:
            say(text)


class EarlyStopping(_Watch):
    """Ends the training after ``patience`` evaluations that were no better; keeps the best as ``best_model``."""

    def __init__(self, monitor="loss", mode="auto", patience=0, verbose=1, min_delta=0, baseline=None,
                 save_best_model=True):
        super().__init__(monitor, mode, patience, min_delta, verbose)
        self.baseline, self.save_best_model, self.save_dir, self.stopped_epoch = baseline, save_best_model, None, 0

    def on_train_begin(self, logs=None):
        """Begin anew, with the base line as the best, if there is one."""
        self._forget(self.baseline)

    def on_eval_end(self, logs=None):
        """Look at the number."""
        value = self._value(logs)
        if value is None:
            return
        if self._is_better(value) and self.save_best_model and self.save_dir:
            self.model.save(f"{self.save_dir}/best_model")
        if self.wait_epoch and self.wait_epoch >= self.patience:
            self.model.stop_training = True
            self._say(f"Epoch {self.stopped_epoch + 1}: Early stopping, best {self.monitor} {self.best_value:.5f}")
        self.stopped_epoch += 1


class ReduceLROnPlateau(_Watch):
    """Multiplies the learning rate by ``factor`` after ``patience`` evaluations in a row that were no better."""

    def __init__(self, monitor="loss", factor=0.1, patience=10, verbose=1, mode="auto", min_delta=1e-4, cooldown=0,
                 min_lr=0):
        super().__init__(monitor, mode, patience, min_delta, verbose)
        if factor >= 1.0:
            raise UsageError(f"ReduceLROnPlateau: expected a factor below 1, got {factor!r}")
        self.factor, self.cooldown, self.min_lr, self.cooldown_counter = factor, cooldown, min_lr, 0

    def on_train_begin(self, logs=None):
        """Begin anew."""
        self._forget()
        self.cooldown_counter = 0

    def on_eval_end(self, logs=None):
        """Look at the number."""
        value = self._value(logs)
        if value is None or isinstance(self.model._optimizer._learning_rate, _Scheduler):
            return
        resting = self.cooldown_counter > 0
        self.cooldown_counter -= resting
        self._is_better(value)
        if resting:
            self.wait_epoch = 0
        elif self.wait_epoch and self.wait_epoch >= self.patience:
            self._reduce(self.model._optimizer)

    def _reduce(self, optimizer):
        before = optimizer.get_lr()
        if before > self.min_lr:
            optimizer.set_lr(max(before * self.factor, self.min_lr))
            self._say(f"ReduceLROnPlateau: learning rate {before:g} -> {optimizer.get_lr():g}")
            self.cooldown_counter, self.wait_epoch = self.cooldown, 0
