"""Rounds in turn: contenders in processes of their own, measured one after the other, again and again.

A B C A B C ...: the noise of a shared machine hits all alike. Knows no case and prints nothing.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# Threads of a pool spin for some milliseconds after their work: the next contender shall not pay for it.
SETTLE_S = 0.05
SAME_LOSS = 1e-3


class Outcome(NamedTuple):
    """What one contender did: seconds per step of each round, first loss, memory."""

    seconds: list
    first_loss: float
    peak_bytes: int
    base_bytes: int

    @property
    def median(self):
        """Seconds per step in the middle round."""
        return statistics.median(self.seconds)


def compare(modules, case, threads, options, rounds, round_s):
    """Outcome by module: each warmed up, then ``rounds`` rounds of about ``round_s`` seconds in turn."""
    contenders = {}
    try:
        for module in modules:
            contenders[module] = Contender(module, case, threads, options)
        for contender in contenders.values():
            contender.warm_up(round_s)
        for _ in range(rounds):
            for contender in contenders.values():
                time.sleep(SETTLE_S)
                contender.run_round()
        return {module: contender.outcome() for module, contender in contenders.items()}
    finally:
        for contender in contenders.values():
            contender.close()


def different_losses(outcomes):
    """A sentence where contenders do not compute the same first loss, else an empty string."""
    losses = {module: outcome.first_loss for module, outcome in outcomes.items() if outcome.first_loss is not None}
    if not losses or max(losses.values()) - min(losses.values()) <= SAME_LOSS * abs(max(losses.values())):
        return ""
    return "these do not compute the same: first losses " + ", ".join(f"{m} {v:.6g}" for m, v in losses.items())


class Contender:
    """A process that runs steps when told."""

    def __init__(self, module, case, threads, options):
        self.name = f"{module}.{case}, {threads} thread(s)"
        spec = json.dumps({"module": module, "case": case, "threads": threads, "options": options})
        self.process = subprocess.Popen([sys.executable, "-m", "benchmarks.contender", spec], cwd=ROOT, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.count, self.replies = 1, []

    def warm_up(self, round_s):
        """Run until nothing is done for the first time any more; choose the steps of a round."""
        self._run(1)
        second = self._run(1)["seconds"]
        if second < round_s:
            second = self._run(max(1, int(round_s / 4 / second)))["seconds"]
        self.count = max(1, round(round_s / second))

    def run_round(self):
        """One measured round."""
        self.replies.append(self._run(self.count))

    def outcome(self):
        """What was measured so far."""
        last = self.replies[-1]
        return Outcome([reply["seconds"] for reply in self.replies], last["first_loss"], last["peak_bytes"],
                       last["base_bytes"])

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def _run(self, count):
        try:
            self.process.stdin.write(f"{count}\n")
            self.process.stdin.flush()
            reply = self.process.stdout.readline()
        except BrokenPipeError:
            reply = ""
        if not reply:
            raise RuntimeError(f"{self.name}: ended with code {self.process.wait()} instead of answering; see above")
        return json.loads(reply)
