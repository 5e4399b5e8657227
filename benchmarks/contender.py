"""One contender in a process of its own: builds its step, then runs rounds as told on stdin.

``python -m benchmarks.contender '{"module": "floors", "case": "fit_a_line", "threads": 1, "options": {}}'``
reads a number of steps per line and answers each with a line of JSON: seconds, first loss, peak memory.
Own processes, so that neither memory nor thread pools of one contender are another's.
"""

import importlib
import inspect
import json
import os
import sys
import time


def main():
    """Serve rounds until stdin ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not pass for a reply
    spec = json.loads(sys.argv[1])
    module = importlib.import_module("benchmarks." + spec["module"])
    base = peak_bytes()
    module.set_threads(spec["threads"])
    step = _make_step(getattr(module, spec["case"]), spec)
    first_loss = None
    for line in sys.stdin:
        count = int(line)
        began = time.perf_counter()
        for _ in range(count):
            loss = step()
        seconds = time.perf_counter() - began
        first_loss = loss if first_loss is None else first_loss
        print(json.dumps({"seconds": seconds / count, "first_loss": first_loss,
                          "peak_bytes": peak_bytes(), "base_bytes": base}), file=replies, flush=True)


def peak_bytes():
    """The most memory this process has held so far."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def _make_step(make, spec):
    options = dict(spec["options"])
    if "threads" in inspect.signature(make).parameters:
        options["threads"] = spec["threads"]
    return make(**options)


if __name__ == "__main__":
    main()
