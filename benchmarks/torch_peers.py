"""How fast do PyTorch models train over MPI, beside DistributedDataParallel over gloo and a model without exchange?

``python -m benchmarks.torch_peers [--quick] [--json]`` starts its own ranks, with one thread each. First perceptrons on
2 ranks: *parallel* is ``fleet.parallel``, *ddp* stock DistributedDataParallel over ``fleet.process_group``, *gloo* the
same over gloo; a step is forward, backward and SGD. Then a click model on 1 server and 2 workers: *servers* has its
table on the server; *alone* is the limit: nn.Embedding with sparse Adagrad in each worker, which exchanges nothing.
All ways are measured in turns within the same ranks. Last, in one process, what the array door costs over the bare
client: benchmarks.door.
"""

import argparse
import json
import statistics
import sys

from benchmarks import door, host, mpi_ranks

SIZES = {"1 M": 1_000_000, "10 M": 10_000_000, "50 M": 50_000_000}
BATCHES = (32, 128)
AIM_AT_10_M, AIM, AIM_OF_LIMIT = 1.5, 1.0, 0.8
CLICKS = {"height": 1_000_000, "slots": 26, "dim": 16}


def main(argv=None):
    """Print the tables; returns an exit code."""
    options = _options(argv)
    rounds = 2 if options.quick else 7
    print(f"{'steps/s, 2 ranks':26}{'parallel':>10}{'ddp':>10}{'gloo':>10}{'x gloo':>18}  aim")
    dense = []
    for name, size in ({"20 k": 20_000} if options.quick else SIZES).items():
        for batch in (8,) if options.quick else BATCHES:
            seconds = mpi_ranks.run(2, "torch_peers_ranks", "dense", {
                "size": size, "batch": batch, "rounds": rounds, "steps": 2 if options.quick else _steps(size)})
            dense.append({"size": name, "batch": batch, "seconds": seconds})
            print(_dense_line(dense[-1]), flush=True)
    clicks = {**CLICKS, "height": 1000} if options.quick else CLICKS
    found = mpi_ranks.run(3, "torch_peers_ranks", "clicks", {
        **clicks, "batch": 64 if options.quick else 4096, "rounds": rounds, "steps": 2 if options.quick else 5})
    print("\n" + _clicks_line(found, clicks) + "\n", flush=True)
    # Last: it starts MPI in this process, and whoever has done that had better start no other mpirun.
    surroundings = {"host": host.facts(), "mpi": mpi_ranks.family()}
    over = door.report(options.quick)
    if options.json:
        print(json.dumps({"benchmark": "torch_peers", **surroundings, "dense": dense, "clicks": found, "door": over}))
    return 0


def _steps(size):
    """In a round: about a second's."""
    return max(3, 30_000_000 // size)


def _dense_line(row):
    ways = ("parallel", "ddp", "gloo")
    rates = {way: 1 / statistics.median(row["seconds"][way]) for way in ways}
    aim = AIM_AT_10_M if row["size"] == "10 M" else AIM
    ratios = [_ratio(row["seconds"], way, "gloo") for way in ways[:2]]
    met = ratios[0] >= aim and ratios[1] >= AIM
    title = f"{row['size']} parameters, batch {row['batch']}"
    return (f"{title:26}" + "".join(f"{rates[way]:10.2f}" for way in ways)
            + f"{ratios[0]:9.2f}{ratios[1]:9.2f}  {aim:g}, {AIM:g}: {'met' if met else 'NOT met'}")


def _clicks_line(found, shape):
    ratio = _ratio(found, "servers", "alone")
    rates = {way: 1 / statistics.median(found[way]) for way in ("servers", "alone")}
    return (f"click model, {shape['height']:,} rows, {shape['slots']} slots, dim {shape['dim']}: "
            f"{rates['servers']:.2f} steps/s by 1 server and 2 workers, {rates['alone']:.2f} in each worker alone: "
            f"{ratio:.2f} of the limit; "
            f"aim {AIM_OF_LIMIT:g}: {'met' if ratio >= AIM_OF_LIMIT else 'NOT met'}")


def _ratio(seconds, way, other):
    """How many times as fast, by the median of rounds, each beside its neighbour."""
    return statistics.median(theirs / mine for mine, theirs in zip(seconds[way], seconds[other]))


def _options(argv):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_peers", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for breakage, not for numbers")
    parser.add_argument("--json", action="store_true", help="add a line with all figures")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
