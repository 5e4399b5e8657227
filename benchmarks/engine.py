"""How fast and how large is the engine, beside bare numpy calls and beside PyTorch?

``python -m benchmarks.engine [--quick] [--only fit_a_line,wide_and_deep,resnet] [--peer torch] [--json]``
Ratios are of medians, in brackets of the best rounds; above 1 the engine is the faster (or, for memory,
the larger). Read ratios, not absolute figures: these move with the machine and its other users.
"""

import argparse
import json
import statistics
import sys
from typing import NamedTuple

from benchmarks import first_step, host
from benchmarks.rounds import compare, different_losses

ROUNDS = 5
ROUND_S = 0.5
FIRST_STEP_AIM_S = 2.0
# What a contender's module is called in the table.
NAMES = {"ours": "engine", "floors": "floor", "torch_peer": "torch"}


class Case(NamedTuple):
    """One row of the table.

    ``aims``: least ratio to a contender; ``memory_aim``: largest ratio to the peer;
    ``most_above_floor_us``: microseconds a step may take above the floor.
    """

    name: str
    title: str
    threads: int
    unit: str
    per_step: int
    options: dict
    aims: dict
    memory_aim: float = None
    most_above_floor_us: float = None


def cases(quick):
    """All rows; the quick ones are small, for breakage and not for numbers."""
    yield Case("fit_a_line", "fit_a_line, batch 20", 1, "steps/s", 1, {"batch": 20}, {"torch_peer": 8.0},
               most_above_floor_us=15)
    small = {"table": [1001, 10]} if quick else {}
    for batch in (64,) if quick else (512, 4096):
        for threads in (2,) if quick else (1, 2):
            yield Case("wide_and_deep", f"wide_and_deep, batch {batch}", threads, "examples/s", batch,
                       {"batch": batch, **small}, {"torch_peer": 1.2, "floors": 1 / 1.1})
    layers, size, batch = (18, 32, 2) if quick else (50, 224, 8)
    for threads in (2,) if quick else (1, 2):
        yield Case("resnet", f"ResNet-{layers}, batch {batch}, {size}x{size}", threads, "images/s", batch,
                   {"batch": batch, "layers": layers, "size": size}, {"torch_peer": 1.0}, 1.0)


def main(argv=None):
    """Print the table; returns an exit code."""
    options = _options(argv)
    modules = ["ours", "floors"]
    if options.peer:
        if host.has(options.peer):
            modules.append(options.peer + "_peer")
        else:
            print(f"{options.peer} is not installed beside this Python: the table has no peer")
    chosen = [case for case in cases(options.quick) if case.name in options.only]
    rows = []
    print(_heading("median (min..max)", modules))
    for case in chosen:
        if options.quick:
            case = case._replace(aims={}, memory_aim=None, most_above_floor_us=None)
        outcomes = compare(modules, case.name, case.threads, case.options, options.rounds,
                           0 if options.quick else ROUND_S)
        rows.append((case, outcomes))
        print(_speed_line(case, outcomes, modules), flush=True)
    print("\n" + _heading("peak memory, MB", modules))
    for case, outcomes in rows:
        print(_memory_line(case, outcomes, modules))
    seconds = first_step.seconds(options.rounds) if "fit_a_line" in options.only else []
    if seconds:
        print(f"\nimport + first step of fit_a_line, fresh process, warm compiler cache: {_spread(seconds)} s"
              f"; aim below {FIRST_STEP_AIM_S:g} s: {_met(statistics.median(seconds) < FIRST_STEP_AIM_S)}")
    if options.json:
        print(_json(rows, seconds))
    return 0


def _options(argv):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and two rounds: for breakage, not numbers")
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="NAMES",
                        default=["fit_a_line", "wide_and_deep", "resnet"],
                        help="some of fit_a_line,wide_and_deep,resnet")
    parser.add_argument("--peer", choices=["torch"], help="measure PyTorch's eager CPU loop in the same run")
    parser.add_argument("--rounds", type=int, help=f"rounds of each contender (default {ROUNDS})")
    parser.add_argument("--json", action="store_true", help="a last line with everything, and the host's facts")
    options = parser.parse_args(argv)
    unknown = set(options.only) - {case.name for case in cases(True)}
    if unknown:
        parser.error(f"--only: no case is called {', '.join(sorted(unknown))}")
    options.rounds = options.rounds or (2 if options.quick else ROUNDS)
    return options


def _speed_line(case, outcomes, modules):
    rates = [_spread([case.per_step / s for s in outcomes[module].seconds]) for module in modules]
    ratios = {module: outcomes[module].median / outcomes["ours"].median for module in modules[1:]}
    aims = [f"{NAMES[module]} {_against(ratios[module], aim)}" for module, aim in case.aims.items()
            if module in ratios]
    if case.most_above_floor_us:
        above = (outcomes["ours"].median - outcomes["floors"].median) * 1e6
        aims.append(f"{above:.0f} us above the floor, aim {case.most_above_floor_us:g}: "
                    + _met(above <= case.most_above_floor_us))
    wrong = different_losses(outcomes)
    line = _line(f"{case.title}: {case.unit}", case.threads, *rates,
                 *(f"{ratio:.2f} ({_best(outcomes, module):.2f})" for module, ratio in ratios.items()),
                 ", ".join(aims))
    return line + ("\n  " + wrong if wrong else "")


def _best(outcomes, module):
    return min(outcomes[module].seconds) / min(outcomes["ours"].seconds)


def _memory_line(case, outcomes, modules):
    peaks = [f"{outcomes[module].peak_bytes / 1e6:.0f}" for module in modules]
    ratios = {module: outcomes["ours"].peak_bytes / outcomes[module].peak_bytes for module in modules[1:]}
    aim = ""
    if case.memory_aim and "torch_peer" in ratios:
        aim = f"at most {case.memory_aim:g}: {_met(ratios['torch_peer'] <= case.memory_aim)}"
    return _line(case.title, case.threads, *peaks, *(f"{ratio:.2f}" for ratio in ratios.values()), aim)


def _against(ratio, aim):
    return f">= {aim:.2f}: {_met(ratio >= aim)}"


def _met(holds):
    return "met" if holds else "NOT met"


def _spread(values):
    middle = statistics.median(values)
    digits = 0 if middle >= 1000 else 2
    return f"{middle:.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def _heading(title, modules):
    names = [NAMES[module] for module in modules]
    return _line(title, "threads", *names, *(f"x {name}" for name in names[1:]), "aims")


def _line(title, threads, *cells):
    *figures, last = cells
    ratios = len(figures) // 2
    wide = [f"{cell:<24}" for cell in figures[:len(figures) - ratios]]
    narrow = [f"{cell:<15}" for cell in figures[len(figures) - ratios:]]
    return f"{title:<40}{threads!s:<9}{''.join(wide)}{''.join(narrow)}{last}".rstrip()


def _json(rows, seconds):
    results = [{"case": case.name, "title": case.title, "threads": case.threads, "unit": case.unit,
                "per_step": case.per_step, **{module: outcome._asdict() for module, outcome in outcomes.items()}}
               for case, outcomes in rows]
    return json.dumps({"host": host.facts(), "results": results, "first_step_s": seconds})


if __name__ == "__main__":
    sys.exit(main())
