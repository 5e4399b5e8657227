"""How long does it take to place many variables on servers? Seconds: the median, and the best of all repeats.

``python -m benchmarks.placing [--variables N] [--servers N] [--repeats N]``
A quarter of the variables is cut. ``place`` is what decides; ``records`` makes a Shard of every block, which happens
once, when they are first asked for. The floor is a plain tuple of as many fields per block.
"""

import argparse
import statistics
import sys
import time

from fleet_mpi.placement import Variable, place
from fleet_mpi.placement.dispatch import METHODS


def main(argv=None):
    """Print the table; returns an exit code."""
    options = _options(argv)
    variables = [Variable(f"layer_{at}.w_0", (at % 2200, 10)) for at in range(options.variables)]
    print(f"{options.variables:,} variables, {options.servers} servers, {options.repeats} repeats: median (best)")
    for method in METHODS:
        timed = [_timed(variables, options.servers, method) for _ in range(options.repeats + 1)]
        _, *kept = timed  # the first one loads compiled code
        print(f"{method:12}" + "".join(f"  {name} {statistics.median(times):6.2f} ({min(times):.2f}) s"
                                       for name, times in zip(("place", "records", "floor"), zip(*kept))))
    return 0


def _timed(variables, servers, method):
    began = time.perf_counter()
    placement = place(variables, servers, method)
    placed = time.perf_counter()
    shards = placement.shards
    made = time.perf_counter()
    columns = list(zip(*shards))
    copied = time.perf_counter()
    tuple(zip(*columns))
    return placed - began, made - placed, time.perf_counter() - copied


def _options(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variables", type=int, default=1_000_000)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
