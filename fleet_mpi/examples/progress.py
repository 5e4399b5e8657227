"""The line that tells how training goes: one that is rewritten on a person's terminal, plain lines elsewhere."""

import sys
import time

from fleet_mpi.ranks import cluster

# Fast enough to look alive; in a log file a line now and then is enough.
TERMINAL_EVERY_S = 0.1
LOG_EVERY_S = 2.0


class Progress:
    """Shows what it is told from time to time, with the samples per second since it was last shown.

    The first step, in which kernels are compiled, counts in no speed. ``name`` says who speaks where several processes
    share a terminal; their lines are not rewritten.
    """

    def __init__(self, name="", stream=None, clock=time.monotonic):
        self.stream = stream or sys.stdout
        self.clock = clock
        self.prefix = name and f"{name}: "
        self.rewrites = is_persons(self.stream) and not name
        self.first_step_s = None
        self.total = self.samples = 0
        self.begun_at = self.stepped_at = self.shown_at = clock()
        self.text, self.is_shown = "", True

    def step(self, text, samples):
        """Tell that ``samples`` more were trained on; shown if the last line is old enough."""
        now = self.stepped_at = self.clock()
        self.text, self.is_shown = text, False
        is_due = now - self.shown_at >= (TERMINAL_EVERY_S if self.rewrites else LOG_EVERY_S)
        if self.first_step_s is None:
            self.first_step_s = now - self.begun_at
            self.begun_at = self.shown_at = now
        else:
            self.samples += samples
            self.total += samples
        if is_due:
            self._show(now)

    @property
    def seconds(self):
        """Of all steps but the first."""
        return self.stepped_at - self.begun_at

    @property
    def speed(self):
        """Samples per second of all steps but the first."""
        return self.total / max(self.seconds, 1e-9)

    def end(self, text=None):
        """Show the last step if it was not, then perhaps a line that stays."""
        if not self.is_shown:
            self._show(self.clock())
        if self.rewrites and self.text:
            self.stream.write("\n")
        if text:
            self.stream.write(f"{self.prefix}{text}\n")
        self.stream.flush()
        self.text, self.shown_at = "", self.clock()

    def _show(self, now):
        rate = f"  {self.samples / max(now - self.shown_at, 1e-9):,.0f} samples/s" if self.samples else ""
        line = f"{self.prefix}{self.text}{rate}"
        # Back to the line's start, and clear what a longer line left behind.
        self.stream.write(f"\r{line}\x1b[K" if self.rewrites else line + "\n")
        self.stream.flush()
        self.samples, self.shown_at, self.is_shown = 0, now, True


def is_persons(stream):
    """Whether a stream is a terminal that somebody looks at: Open MPI gives ranks one whose output ends in a log."""
    return stream.isatty() and not cluster.launched()
