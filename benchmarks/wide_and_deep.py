"""How many examples a second does wide & deep train on with a growing table on a server, beside no exchange at all?

``python -m benchmarks.wide_and_deep [--quick] [--json] [--modes sync,async,geo] [--batches 512,4096]`` starts its own
ranks, one server and two workers, with one thread each. Ids are below 10^10, 26 an example. *by server* is a mode of
the table below; *alone* is the limit: the same model in each of the two workers, which keeps its own growing table and
exchanges nothing. Both train in turns within the same ranks, so the ratio of a round is of neighbours; printed are the
median and the extremes. *of CPU* is the same ratio of CPU time, that of the server included: what the exchange costs
where cores are all busy, whoever else uses this machine; a mode that leaves cores idle comes to less than it.
"""

import argparse
import json
import statistics
import sys

from benchmarks import host, mpi_ranks
from benchmarks.rounds import SAME_LOSS
from fleet_mpi import modes

MODES = ("sync", "async", "geo")
BATCHES = (512, 4096)
WAYS = ("by server", "alone")
WORKERS = 2
K_STEPS = 100
# Of the limit, by mode and batch.
AIMS = {("sync", 512): 0.8, ("sync", 4096): 0.93, ("geo", 512): 0.97, ("geo", 4096): 0.97}
QUICK = {"batch": 16, "k_steps": 2, "rounds": 2, "round_s": 0.0}


def main(argv=None):
    """Print the table; returns an exit code."""
    options = _options(argv)
    print(f"{'examples/s, 1 server, 2 workers':32}" + "".join(f"{way:>12}" for way in WAYS)
          + f"{'of the limit':>22}{'of CPU':>9}  aim")
    figures = []
    for batch in (QUICK["batch"],) if options.quick else options.batches:
        for mode in options.modes:
            figures.append({"mode": mode, "batch": batch, **_measured(mode, batch, options)})
            print(line_of(figures[-1]), flush=True)
    if options.json:
        print(json.dumps({"benchmark": "wide_and_deep", "host": host.facts(), "mpi_family": mpi_ranks.family(),
                          "figures": figures}))
    return 0


def _measured(mode, batch, options):
    asked = {"batch": batch, "k_steps": options.k_steps, "rounds": options.rounds, "round_s": options.round_s}
    return mpi_ranks.run(1 + WORKERS, "wide_and_deep_ranks", mode, {**asked, **(QUICK if options.quick else {})})


def line_of(figure):
    """A row of the table: what was measured, or why the mode is refused."""
    title = f"{figure['mode']}, batch {figure['batch']}"
    if "refused" in figure:
        return f"{title:32}refused: {figure['refused']}"
    rates = rates_of(figure)
    ratios = ratios_of(figure["seconds"])
    spread = f"{statistics.median(ratios):.3f} ({min(ratios):.2f}..{max(ratios):.2f})"
    line = (f"{title:32}{rates['by server']:12,.0f}{rates['alone']:12,.0f}{spread:>22}{cpu_ratio(figure['cpu_s']):9.3f}"
            f"  {_aim(figure, statistics.median(ratios))}")
    first = figure["first_loss"].values()
    if max(first) - min(first) > SAME_LOSS * abs(max(first)):
        line += f"\n  these do not compute the same: first losses {figure['first_loss']}"
    return line


def rates_of(figure):
    """Examples a second of both workers together, by way."""
    return {way: WORKERS * figure["batch"] / statistics.median(seconds) for way, seconds in figure["seconds"].items()}


def ratios_of(seconds):
    """By round: how many times as fast as the limit training by the server is."""
    return [limit / mine for mine, limit in zip(seconds["by server"], seconds["alone"], strict=True)]


def cpu_ratio(cpu_s):
    """CPU seconds of the workers at the limit by those of all ranks, both per step, medians over rounds."""
    limit = statistics.median(sum(workers) for _, *workers in cpu_s["alone"])
    return limit / statistics.median(sum(ranks) for ranks in cpu_s["by server"])


def _aim(figure, ratio):
    aim = AIMS.get((figure["mode"], figure["batch"]))
    return "" if aim is None else f"{aim:g}: {'met' if ratio >= aim else 'NOT met'}"


def _options(argv):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide_and_deep", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for breakage and not for numbers")
    parser.add_argument("--json", action="store_true", help="everything measured as one line at the end")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=MODES, help="between commas")
    parser.add_argument("--batches", type=lambda text: [int(one) for one in text.split(",")], default=BATCHES,
                        help="examples of each worker's step, between commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--round-s", type=float, default=2.0, help="about how long a round of one way is")
    parser.add_argument("--k-steps", type=int, default=K_STEPS, help="geo: steps from one exchange to the next")
    options = parser.parse_args(argv)
    if not set(options.modes) <= set(modes.MODES):
        parser.error(f"--modes: expected some of {', '.join(modes.MODES)}, got {', '.join(options.modes)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
