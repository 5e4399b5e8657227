"""Where does a step of the engine go? Milliseconds by op type: the median, and the best of all steps.

``python -m benchmarks.op_times fit_a_line|wide_and_deep|resnet [--threads N] [--steps N] [--batch N] [--each]``
Every call of the compiled plan is timed by itself, which adds about 0.1 us to each; the rest of a step
(finding the plan, copying feeds and fetches, looping) is the last line.
"""

import argparse
import statistics
import sys
import time
from collections import defaultdict

from benchmarks import ours

SIZES = {"fit_a_line": {"batch": 20}, "wide_and_deep": {"batch": 512},
         "resnet": {"batch": 8, "layers": 50, "size": 224}}


def main(argv=None):
    """Print the table of one case; returns an exit code."""
    options = _options(argv)
    sizes = dict(SIZES[options.case])
    sizes["batch"] = options.batch or sizes["batch"]
    ours.set_threads(options.threads)
    training = getattr(ours, options.case)(**sizes).__self__
    training.step()
    plan = _plan_of(training)
    spent = [(_label(op, options.each), []) for op in plan.ops]
    plan.calls = [_timed(call, times) for call, (_, times) in zip(plan.calls, spent)]
    steps = []
    _timed(training.step, [])()
    for _, times in spent:
        times.clear()
    step = _timed(training.step, steps)
    for _ in range(options.steps):
        step()
    _print(spent, steps)
    return 0


def _plan_of(training):
    """The one plan that the executor keeps for the training program."""
    compiled = training.exe.compiled(training.program, training.scope)
    plan, = compiled.plans.values()
    return plan


def _label(op, each):
    return f"{op.type} {(op.output_arg_names or op.input_arg_names or [''])[0]}" if each else op.type


def _timed(call, times):
    def run():
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return run


def _print(spent, steps):
    by_label = defaultdict(list)
    for label, times in spent:
        by_label[label].append(times)
    rows = [(label, len(calls), sum(map(statistics.median, calls)), sum(map(min, calls)))
            for label, calls in by_label.items()]
    whole = statistics.median(steps)
    print(f"{'op':<50}{'calls':>7}{'ms':>11}{'share':>8}{'best ms':>11}")
    for label, count, middle, best in sorted(rows, key=lambda row: -row[2]):
        print(f"{label:<50}{count:>7}{middle * 1e3:>11.4f}{middle / whole:>8.1%}{best * 1e3:>11.4f}")
    rest = whole - sum(row[2] for row in rows)
    print(f"{'outside ops':<57}{rest * 1e3:>11.4f}{rest / whole:>8.1%}")
    print(f"{'a step':<57}{whole * 1e3:>11.4f}{'':>8}{min(steps) * 1e3:>11.4f}")


def _options(argv):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.op_times", description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=sorted(SIZES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--each", action="store_true", help="every op by itself instead of every type")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
