"""What does the door for arrays cost over the bare client, per step?

``python -m benchmarks.door [--quick] [--json]``: one process, its server embedded, so that nothing but the calls
themselves differs. The same model trains by ``client.collect(client.push_pull())`` and by ``server.push_pull()``, with
gradients computed in place and with gradients handed over as a dictionary; all in turns. Figures are medians over
rounds, in microseconds; the aim, below 5 us, is for gradients in place.
"""

import argparse
import json
import statistics
import sys
import time

import numpy as np

from benchmarks import host
from fleet_mpi.connections import server
from fleet_mpi.connections.worker import WorkerConnection
from fleet_mpi.door import joining

AIM_US = 5.0
SHAPES = {"w": (64, 32), "b": (32,)}


def main(argv=None):
    """Print the table; returns an exit code."""
    options = _options(argv)
    found = report(options.quick)
    if options.json:
        print(json.dumps({"benchmark": "door", "host": host.facts(), **found}))
    return 0


def report(quick):
    """Measure all ways and print the table; returns the figures, as JSON takes them."""
    ways = {"bare client": bare(), **doors()}
    figures = measured(ways, 3 if quick else 60, 20 if quick else 300)
    floor = figures["bare client"]
    for name, seconds in figures.items():
        print(f"{name:34}{_us(seconds):9.2f} us a step{_over(floor, seconds) if name != 'bare client' else ''}")
    over = extra_us(floor, figures["door, gradients in place"])
    print(f"the door costs {over:.2f} us a step; aim below {AIM_US:g} us: {'met' if over < AIM_US else 'NOT met'}")
    return {"seconds": figures, "over_us": over}


def bare():
    """A step of the client alone."""
    job = joining.join(1)
    job.parameter_server(_params(), lr=1e-3)
    declared = job._declaring.declared
    job.leave()
    terms = declared.terms(["server 0"], 1, 0)
    client = WorkerConnection(terms, server.embedded(terms, [declared.prepare()])).client
    client.rates[...] = 1e-3

    def step():
        client.collect(client.push_pull())
    return step


def doors():
    """Steps of the door."""
    trained, params = joining.join(1).parameter_server(given := _params(), lr=1e-3), given
    grads = {name: np.full_like(one, 1e-3) for name, one in params.items()}
    return {"door, gradients in place": trained.push_pull, "door, gradients as a dictionary":
            lambda: trained.push_pull(grads)}


def _params():
    return {name: np.zeros(shape, "float32") for name, shape in SHAPES.items()}


def measured(ways, rounds, steps):
    """{way: seconds per step of each round}; ways take turns, in an order that changes."""
    found, order = {name: [] for name in ways}, list(ways)
    for step in ways.values():
        for _ in range(steps):
            step()
    for number in range(rounds):
        for name in order[number % len(order):] + order[:number % len(order)]:
            step, began = ways[name], time.perf_counter()
            for _ in range(steps):
                step()
            found[name].append((time.perf_counter() - began) / steps)
    return found


def extra_us(floor, seconds):
    """The median over rounds of what a way takes more than the floor, in the same round."""
    return 1e6 * statistics.median(one - other for one, other in zip(seconds, floor))


def _us(seconds):
    return 1e6 * statistics.median(seconds)


def _over(floor, seconds):
    return f", {extra_us(floor, seconds):+.2f}"


def _options(argv):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.door", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few steps, for breakage and not for numbers")
    parser.add_argument("--json", action="store_true", help="everything measured as one line at the end")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
