"""``ProgBarLogger``: the lines that a script prints while it trains, on the first worker only."""

import sys
import time

from fleet_mpi.hapi import together
from fleet_mpi.hapi.callback import Callback
from fleet_mpi.program.graph.structures import as_list

BAR_WIDTH = 30


def say(text, end="\n"):
    """Print for the job."""
    if together.is_first():
        sys.stdout.write(text + end)
        sys.stdout.flush()


class ProgBarLogger(Callback):
    """Prints losses and metrics every ``log_freq`` steps: 0 nothing, 1 one line that grows, 2 a line each time."""

    def __init__(self, log_freq=1, verbose=2):
        super().__init__()
        self.log_freq, self.verbose = log_freq, verbose
        self._steps = self._names = None
        self._samples = 0

    def on_train_begin(self, logs=None):
        """Say how the numbers are meant."""
        self._say("The loss is that of the current step, metrics are those of all steps of the pass so far.")

    def on_epoch_begin(self, epoch=None, logs=None):
        """Say which epoch begins."""
        self._say(f"Epoch {epoch + 1}/{self.params.get('epochs')}")
        self._begin({"steps": self.params.get("steps"), "metrics": self.params.get("metrics")})

    def on_train_batch_end(self, step, logs=None):
        """Print at every ``log_freq``-th step."""
        self._step(step, logs)

    def on_epoch_end(self, epoch, logs=None):
        """Print the pass."""
        self._finish(logs)

    def on_eval_begin(self, logs=None):
        """Say that an evaluation begins."""
        self._say("Eval begin...")
        self._begin(logs)

    def on_eval_batch_end(self, step, logs=None):
        """Print at every ``log_freq``-th step."""
        self._step(step, logs)

    def on_eval_end(self, logs=None):
        """Print the pass and how many samples it had."""
        self._finish(logs)
        self._say(f"Eval samples: {self._samples}")

    def on_predict_begin(self, logs=None):
        """Say that a prediction begins."""
        self._say("Predict begin...")
        self._begin({**(logs or {}), "metrics": []})

    def on_predict_batch_end(self, step, logs=None):
        """Print at every ``log_freq``-th step."""
        self._step(step, logs)

    def on_predict_end(self, logs=None):
        """Print the pass and how many samples it had."""
        self._finish(logs)
        self._say(f"Predict samples: {self._samples}")

    def _say(self, text, end="\n"):
        if self.verbose:
            say(text, end)

    def _begin(self, logs):
        self._steps, self._names = (logs or {}).get("steps"), (logs or {}).get("metrics") or []
        self._samples, self._done, self._start = 0, 0, time.monotonic()

    def _step(self, step, logs):
        self._samples += (logs or {}).get("batch_size", 0)
        self._done = step + 1
        if self._done % self.log_freq == 0 and self._done != self._steps:
            self._say(self._line(logs), "\r" if self.verbose == 1 else "\n")

    def _finish(self, logs):
        if self._done:
            self._say(self._line(logs or {}))

    def _line(self, logs):
        of = "" if self._steps is None else f"/{self._steps}"
        bar = f" [{_bar(self._done, self._steps)}]" if self.verbose == 1 and self._steps else ""
        words = [f"{name}: {' '.join(_number(one) for one in as_list(logs[name]))}"
                 for name in self._names if name in logs]
        pace = (time.monotonic() - self._start) / self._done * 1000
        return " - ".join([f"step {self._done}{of}{bar}", *words, f"{pace:.0f}ms/step"])


def _bar(done, steps):
    full = BAR_WIDTH * done // steps
    return "=" * full + "." * (BAR_WIDTH - full)


def _number(value):
    return f"{float(value):.4f}" if abs(float(value)) >= 1e-3 or not float(value) else f"{float(value):.4e}"
