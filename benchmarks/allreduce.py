"""How fast are gradients averaged over ranks, beside one raw Allreduce and beside PyTorch's DDP with gloo?

``python -m benchmarks.allreduce [--quick] [--json] [--size FLOATS] [--ranks 2,4] [--peer torch]`` starts its own
ranks. GB/s are bytes of gradients by the time from the first that is ready to the last that is the sum. *exact* adds
in rank order, in memory that the ranks share; *messages* are its bits without such memory (FLEET_MPI_SHARED_MEMORY=0,
or several machines); *fast* is by the library's Allreduce: all through a session of collective training, in buckets.
*raw* is one Allreduce call of as many bytes. Measured in turns within the same ranks; ratios are of medians.
"""

import argparse
import json
import statistics
import sys

from benchmarks import ddp, host, mpi_ranks

SHAPES = {"ResNet-50": "resnet", "wide&deep": "wide_and_deep", "8 Ki floats": 8 << 10, "64 Ki floats": 64 << 10,
          "1 Mi floats": 1 << 20, "10 Mi floats": 10 << 20, "50 Mi floats": 50 << 20}
QUICK_SHAPES = {"wide&deep": "wide_and_deep", "8 Ki floats": 8 << 10}
WAYS = ("exact", "messages", "fast", "raw")
LARGE_BYTES = 40e6
AIM_LARGE, AIM_SMALL = 2.0, 0.95


def main(argv=None):
    """Print the tables; returns an exit code."""
    options = _options(argv)
    shapes = {f"{options.size} floats": options.size} if options.size else QUICK_SHAPES if options.quick else SHAPES
    print(f"{'GB/s, ' + mpi_ranks.family():34}" + "".join(f"{way:>9}" for way in WAYS)
          + f"{'exact/raw':>11}{'fast/raw':>10}  aims (2 ranks)")
    figures = []
    for ranks in options.ranks:
        for name, shape in shapes.items():
            figures.append(_measure(ranks, name, shape, options))
            print(_line(figures[-1]), flush=True)
    hooks = None if options.size else _hooks(options)
    steps = ddp.table(options) if options.peer else []
    if options.json:
        print(json.dumps({"benchmark": "allreduce", "host": host.facts(), "mpi": mpi_ranks.family(), "figures": figures,
                          "hooks": hooks, "steps": steps}))
    return 0


def _measure(ranks, name, shape, options):
    found = mpi_ranks.run(ranks, "allreduce_ranks", "rates", {"shape": shape, "rounds": 2 if options.quick else 7})
    rates = {way: found["bytes"] / 1e9 / statistics.median(found["seconds"][way]) for way in WAYS}
    return {"ranks": ranks, "name": name, "rates": rates, **found}


def _line(figure):
    rates = figure["rates"]
    title = f"{figure['name']}, {figure['bytes'] / 1e6:.3g} MB, {figure['ranks']} ranks"
    return (f"{title:34}" + "".join(f"{rates[way]:9.2f}" for way in WAYS)
            + f"{rates['exact'] / rates['raw']:11.2f}{rates['fast'] / rates['raw']:10.2f}  {_aims(figure)}")


def _aims(figure):
    """What this row should reach, and which variant does."""
    if figure["ranks"] != 2:
        return ""
    aim = AIM_LARGE if figure["bytes"] >= LARGE_BYTES else AIM_SMALL
    rates = figure["rates"]
    told = (f"{way} {'met' if rates[way] >= aim * rates['raw'] else 'NOT met'}" for way in ("exact", "fast"))
    return f"{aim:g} x raw: {', '.join(told)}"


def _hooks(options):
    found = mpi_ranks.run(1, "allreduce_ranks", "hooks", {"shape": "resnet", "rounds": 2 if options.quick else 7})
    print(f"\none rank, nothing to send: a step spends {1e6 * statistics.median(found['seconds']):.0f} us on telling "
          f"of {found['gradients']} gradients")
    return found


def _options(argv):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.allreduce", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for breakage and not for numbers")
    parser.add_argument("--json", action="store_true", help="everything measured as one line at the end")
    parser.add_argument("--size", type=int, metavar="FLOATS",
                        help="one gradient of as many floats, instead of all sizes")
    parser.add_argument("--ranks", type=_numbers, metavar="N,N", help="numbers of ranks (default 2,4)")
    parser.add_argument("--peer", choices=["torch"], help="steps of an MLP on 2 ranks beside DDP with gloo")
    parser.add_argument("--peer-python", metavar="PATH", default=sys.executable,
                        help="the Python that has the peer (default: this one)")
    parser.add_argument("--batch", type=int, default=ddp.BATCH, help="examples a rank and step of the MLP (default: "
                                                                     "%(default)s)")
    options = parser.parse_args(argv)
    options.ranks = options.ranks or ([2] if options.quick or options.size else [2, 4])
    return options


def _numbers(text):
    return [int(word) for word in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
