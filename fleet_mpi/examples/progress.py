"""The line that tells how training goes: one that is rewritten on a terminal, plain lines elsewhere."""

import sys
import time

# Fast enough to look alive; in a log file a line now and then is enough.
TERMINAL_EVERY_S = 0.1
LOG_EVERY_S = 2.0


class Progress:
    """Shows what it is told from time to time, with the samples per second since it was last shown.

    ``name`` says who speaks where several processes share a terminal; their lines are not rewritten.
    """

    def __init__(self, name="", stream=None, clock=time.monotonic):
        self.stream = stream or sys.stdout
        self.clock = clock
        self.prefix = name and f"{name}: "
        self.rewrites = self.stream.isatty() and not name
        self.samples = 0
        self.shown_at = clock()
        self.text = ""

    def step(self, text, samples):
        """Tell that ``samples`` more were trained on; shown if the last line is old enough."""
        self.samples += samples
        self.text = text
        if self.clock() - self.shown_at >= (TERMINAL_EVERY_S if self.rewrites else LOG_EVERY_S):
            self._show()

    def end(self, text=None):
        """Show the last step if it was not, then perhaps a line that stays."""
        if self.samples:
            self._show()
        if self.rewrites and self.text:
            self.stream.write("\n")
        if text:
            self.stream.write(f"{self.prefix}{text}\n")
        self.stream.flush()
        self.text, self.shown_at = "", self.clock()

    def _show(self):
        now = self.clock()
        rate = self.samples / max(now - self.shown_at, 1e-9)
        line = f"{self.prefix}{self.text}  {rate:,.0f} samples/s"
        # Back to the line's start, and clear what a longer line left behind.
        self.stream.write(f"\r{line}\x1b[K" if self.rewrites else line + "\n")
        self.stream.flush()
        self.samples, self.shown_at = 0, now
