"""How fast do gradients go to a server and parameters come back, beside raw MPI, numpy and memcpy?

``python -m benchmarks.push_pull [--quick] [--size FLOATS] [--json]`` starts its own ranks: one server and one to three
workers.
GB/s are of payload: gradients up plus parameters down, of all workers together. *raw* sends the same buffers by
blocking mpi4py calls and updates nothing; *numpy* is what people write first: blocking buffer calls and plain numpy
updates; *memcpy* copies the same bytes on one rank. All are measured in turns within the same ranks. Then: what an
idle server burns, how a request is met after a pause, what a server remembers, and how long a job takes to start.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

from benchmarks import host, mpi_ranks
from benchmarks.rounds import ROOT

SIZES = {"8 Ki": 8 << 10, "1 Mi": 1 << 20, "10 Mi": 10 << 20, "50 Mi": 50 << 20}
QUICK_SIZES = {"8 Ki": 8 << 10, "300 Ki": 300 << 10}
WAYS = ("ours", "numpy", "raw", "memcpy")
# ps-lite on such a machine, GB/s: limits measured for the issue, not in this run.
PS_LITE = {"8 Ki": 0.10, "10 Mi": 0.86}


def main(argv=None):
    """Print the tables; returns an exit code."""
    options = _options(argv)
    sizes = {str(options.size): options.size} if options.size else QUICK_SIZES if options.quick else SIZES
    print(f"{'payload GB/s, 1 server':34}" + "".join(f"{way:>9}" for way in WAYS)
          + f"{'x numpy':>9}{'x memcpy':>9}  aims")
    figures = []
    for rule in ("sgd",) if options.quick else ("sgd", "adam"):
        for workers in (1,) if options.quick else (1, 2, 3):
            for name, size in sizes.items():
                if workers > 1 and (size > SIZES["10 Mi"] or options.size):
                    continue
                figures.append(_measure(rule, workers, name, size, options))
                print(_line(figures[-1]), flush=True)
    if options.size:
        return _end(options, figures)
    quiet = mpi_ranks.run(2, "push_pull_ranks", "quiet", {"seconds": 1 if options.quick else 10})
    print("\n" + _quiet_lines(quiet))
    memory = [mpi_ranks.run(1 + workers, "push_pull_ranks", "memory",
                            {"size": min(SIZES["10 Mi"], max(sizes.values())), "rule": rule})
              for workers, rule in ((1, "sgd"), (2, "adam"))]
    print("\n".join(_memory_line(one) for one in memory))
    start = _start_seconds(1 if options.quick else 3)
    print(f"mpirun -np 4 fit_a_line, start to exit: {statistics.median(start):.2f} s "
          f"({min(start):.2f}..{max(start):.2f}); aim below 5 s: "
          f"{'met' if statistics.median(start) < 5 else 'NOT met'}")
    return _end(options, figures, quiet=quiet, memory=memory, start=start)


def _end(options, figures, **others):
    if options.json:
        print(json.dumps({"benchmark": "push_pull", "host": host.facts(), "mpi": mpi_ranks.family(), "figures": figures,
                          **others}))
    return 0


def _measure(rule, workers, name, size, options):
    found = mpi_ranks.run(1 + workers, "push_pull_ranks", "rates",
                          {"rule": rule, "size": size, "rounds": 2 if options.quick else 5})
    payload = 8 * size * workers / 1e9
    rates = {way: payload / statistics.median(found[way]) for way in WAYS}
    return {"rule": rule, "workers": workers, "size": name, "floats": size, "seconds": found, "rates": rates}


def _line(figure):
    rates = figure["rates"]
    title = f"{figure['rule']}, {figure['size']} floats, {figure['workers']} worker(s)"
    return (f"{title:34}" + "".join(f"{rates[way]:9.2f}" for way in WAYS)
            + f"{rates['ours'] / rates['numpy']:9.2f}{rates['ours'] / rates['memcpy']:9.2f}  {_aims(figure)}")


def _aims(figure):
    """What the figures of this row should reach, and whether they do."""
    rates, aims = figure["rates"], [("numpy", 1.0)]
    if figure["workers"] == 1 and figure["floats"] >= SIZES["1 Mi"]:
        large = 1.0 if figure["rule"] == "sgd" else 0.65
        if figure["rule"] == "sgd" or figure["floats"] >= SIZES["10 Mi"]:
            aims.append(("memcpy", large if figure["floats"] >= SIZES["10 Mi"] else 0.5))
    words = [f"{aim:g} x {way}: {'met' if rates['ours'] >= aim * rates[way] else 'NOT met'}" for way, aim in aims]
    if figure["workers"] == 1 and figure["rule"] == "sgd" and figure["size"] in PS_LITE:
        known = PS_LITE[figure["size"]]
        words.append(f"10 x ps-lite's {known:g}: {'met' if rates['ours'] >= 10 * known else 'NOT met'}")
    return ", ".join(words)


def _quiet_lines(quiet):
    share = quiet["burnt"] / quiet["seconds"]
    soon, late = (1e6 * statistics.median(quiet[key]) for key in ("soon", "late"))
    return (f"an idle server burns {100 * share:.2f} % of a core over {quiet['seconds']:g} s, after a second of "
            f"idleness; aim below 2 %: {'met' if share < 0.02 else 'NOT met'}\n"
            f"8 Ki floats, round trip 1 ms after the last one: {soon:.0f} us; a second after it: {late:.0f} us (it may "
            f"meet a sleep of 10 ms)")


def _memory_line(one):
    allowed = one["params"] * (1 + one["states"] + one["workers"]) * 1.1
    used = one["server"] - one["empty"]
    return (f"server memory, {one['rule']}, {one['workers']} worker(s): {used / 1e6:.0f} MB above an empty rank; aim "
            f"at most {allowed / 1e6:.0f}: {'met' if used <= allowed else 'NOT met'}")


def _start_seconds(rounds):
    """Seconds of the smallest whole job, by our launcher; the first one fills the compiler's cache."""
    command = [sys.executable, "-m", "fleet_mpi.launch", "--log_dir=", "-np", "4", "-m",
               "fleet_mpi.examples.fit_a_line"]
    seconds = []
    for number in range(rounds + 1):
        began = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=mpi_ranks.TIMEOUT_S,
                              stdin=subprocess.DEVNULL)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\nended with code {done.returncode}:\n{done.stdout}\n{done.stderr}")
        seconds += [time.perf_counter() - began] if number else []
    return seconds


def _options(argv):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.push_pull", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for breakage and not for numbers")
    parser.add_argument("--size", type=int, metavar="FLOATS", help="rates of one worker at this size, nothing else")
    parser.add_argument("--json", action="store_true", help="everything measured as one line at the end")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
