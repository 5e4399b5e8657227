"""How many steps a second does an MLP do on two ranks, beside PyTorch's DistributedDataParallel with gloo?

Part of ``benchmarks.allreduce``. Both sides train the same layers by SGD, from the same values, on the same batches;
each rank computes with its share of the cores. They take turns, in processes that live for all rounds.
"""

import contextlib
import json
import os
import socket
import statistics
import subprocess
import time

from benchmarks import mpi_ranks
from benchmarks.rounds import ROOT

RANKS = 2
BATCH = 32
LAYERS = 4
WIDTHS = {"1 M": 512, "10 M": 1600, "50 M": 3536}
QUICK_WIDTHS = {"0.07 M": 128}
AIM = 1.5
ROUNDS = 5
ROUND_S = 1.0
FIRST_STEPS = 4
SAME_LOSS = 1e-3
SETTLE_S = 0.05


def table(options):
    """Print a row for every size; returns what was measured."""
    if not has_torch(options.peer_python):
        print(f"\n{options.peer_python} has no torch: no peer (--peer-python names one that has)")
        return []
    print(f"\n{f'steps/s, MLP of {LAYERS} layers, batch {options.batch} x {RANKS} ranks':50}"
          + "".join(f"{way:>10}" for way in ("exact", "fast", "DDP")) + f"{'exact/DDP':>11}{'fast/DDP':>10}  aims")
    found = []
    for name, width in (QUICK_WIDTHS if options.quick else WIDTHS).items():
        found.append({"name": name, "width": width, **_measure(width, options)})
        print(_line(found[-1]), flush=True)
    return found


def has_torch(python):
    """Whether a Python has the peer."""
    return subprocess.run([python, "-c", "import torch.distributed"], capture_output=True,
                          stdin=subprocess.DEVNULL).returncode == 0


def _measure(width, options):
    contenders, losses = {}, {}
    spec = json.dumps({"width": width, "batch": options.batch})
    starts = {"exact": _ours(spec, "exact"), "fast": _ours(spec, "fast"), "DDP": _torch(spec, options.peer_python)}
    try:
        for name, start in starts.items():
            contenders[name] = Contender(*start)
            losses[name] = contenders[name].warm_up(0 if options.quick else ROUND_S)
        seconds = {name: [] for name in contenders}
        for _ in range(2 if options.quick else ROUNDS):
            for name, one in contenders.items():
                time.sleep(SETTLE_S)
                seconds[name].append(one.run(one.count)["seconds"])
        return {"seconds": seconds, "losses": losses}
    finally:
        for one in contenders.values():
            one.close()


def _ours(spec, variant):
    environment = {**mpi_ranks.environment(), "FLEET_MPI_ALLREDUCE": variant}
    return [mpi_ranks.command(RANKS, "mlp_ranks", spec)], [environment]


def _torch(spec, python):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environments = [{**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(RANKS),
                     "RANK": str(rank)} for rank in range(RANKS)]
    return [[python, "-m", "benchmarks.ddp_ranks", spec]] * RANKS, environments


class Contender:
    """Processes that run steps when told: all hear, the first one answers."""

    def __init__(self, commands, environments):
        self.processes = [subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE if number == 0 else None)
                          for number, (command, environment) in enumerate(zip(commands, environments))]
        self.count = 1

    def warm_up(self, round_s):
        """Choose the steps of a round; returns the loss after the first few steps."""
        loss = self.run(FIRST_STEPS)["loss"]
        self.count = max(1, round(round_s / self.run(2)["seconds"]))
        return loss

    def run(self, count):
        """Run steps; returns the seconds of each and the last loss."""
        for process in self.processes:
            process.stdin.write(f"{count}\n")
            process.stdin.flush()
        reply = self.processes[0].stdout.readline()
        if not reply:
            raise SystemExit(f"{' '.join(self.processes[0].args)}\nended instead of answering; see above")
        return json.loads(reply)

    def close(self):
        """End the processes."""
        for process in self.processes:
            with contextlib.suppress(BrokenPipeError):  # of one that failed
                process.stdin.write("0\n")  # mpirun does not pass on that its input ends
                process.stdin.close()
        for process in self.processes:
            process.wait()


def serve(step, lines, answer):
    """The other side: run as many steps as each of some lines says, and answer with their seconds and last loss.

    Until one says 0.
    """
    for count in map(int, lines):
        if not count:
            return
        began = time.perf_counter()
        for _ in range(count):
            loss = step()
        answer(json.dumps({"seconds": (time.perf_counter() - began) / count, "loss": loss}))


def _line(figure):
    median = {name: statistics.median(seconds) for name, seconds in figure["seconds"].items()}
    ratios = {name: median["DDP"] / median[name] for name in ("exact", "fast")}
    title = f"{figure['name']} parameters, {figure['width']} wide"
    told = ", ".join(f"{name} {'met' if ratio >= AIM else 'NOT met'}" for name, ratio in ratios.items())
    line = (f"{title:50}" + "".join(f"{1 / seconds:10.2f}" for seconds in median.values())
            + f"{ratios['exact']:11.2f}{ratios['fast']:10.2f}  {AIM:g} x DDP: {told}")
    losses = figure["losses"].values()
    if max(losses) - min(losses) > SAME_LOSS * abs(max(losses)):
        line += f"\n  these do not compute the same: losses after {FIRST_STEPS} steps {figure['losses']}"
    return line
