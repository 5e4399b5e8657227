"""``python turns.py MODE``: two workers and two servers in one process, in an order of arrival that is written down.

Uses the loop of tests/unit/modes, and with it this commit's own classes: each commit runs its own copy.
"""

import hashlib
import random
import sys

from tests.unit.modes.loop import LeastSquares, Loop

_OPTIONS = {"geo": {"k_steps": 3}}
_RULES = {"async": "adam", "delay_compensated": "momentum", "geo": "sgd"}
_STEPS = (4, 8, 12)


def run(mode, steps):
    """Train anew for so many steps, and print the servers' parameters."""
    task, order = LeastSquares(), random.Random(mode)
    loop = Loop(mode, _OPTIONS.get(mode), servers=2, workers=2, rate=0.05, method="HashName", rule=_RULES[mode])
    loop.run(task.trains(loop, steps, own_rate=0.05 if mode == "geo" else None),
             [order.randrange(1000) for _ in range(4000)])
    for name, array in sorted(loop.values().items()):
        sys.stdout.write(f"golden {steps} {name} {hashlib.sha256(array.tobytes()).hexdigest()}\n")


if __name__ == "__main__":
    for length in _STEPS:
        run(sys.argv[1], length)
