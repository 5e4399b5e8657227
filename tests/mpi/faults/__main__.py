"""``python -m tests.mpi.faults --count 200 --seed 1 --jobs 2``: draw faults, run each as a job, print the table.

With the MPI of the Python that runs it. Results are kept in a folder: the same command goes on where it was ended, and
shows what is there already. Exits with 1 if anything was not as it must be.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from fleet_mpi.launch.mpirun import find_mpirun
from tests.mpi.faults import report
from tests.mpi.faults.run import run
from tests.mpi.faults.trial import AXES, draw


def main(argv=None):
    """Run what the command line asks for; returns the exit code."""
    told = options(argv)
    family = find_mpirun().family.replace(" ", "").lower()
    kept = report.Kept(told.out or Path(tempfile.gettempdir(), f"fleet_mpi-faults-{family}-{told.seed}"))
    done = kept.read()
    trials = chosen(told)
    left = [trial for trial in trials if trial.number not in done or told.only or told.again
            and done[trial.number].wrong]
    print(f"{find_mpirun().path}: {len(trials)} faults of seed {told.seed}, {len(left)} to run; results in "
          f"{kept.folder}")
    print(report.header(), flush=True)
    try:
        run_all(left, told, kept, done)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on")
    results = [done[trial.number] for trial in trials if trial.number in done]
    if len(left) < len(trials):
        print("\n".join(["all of them:", report.header(), *map(report.row, results)]))
    print(report.summary(results, lambda number: again(told, number)))
    return 1 if any(result.wrong for result in results) else 0


def options(argv):
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mpi.faults", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--count", type=int, default=40, help="how many faults are drawn (40)")
    parser.add_argument("--seed", default="1", help="what is drawn (1)")
    parser.add_argument("--jobs", type=int, default=1, help="how many run at a time (1)")
    parser.add_argument("--only", type=int, action="append",
                        help="run this one, and show what it wrote; may be repeated")
    parser.add_argument("--again", action="store_true", help="run those again that were not as they must be")
    parser.add_argument("--deadline", type=float, default=6.0, help="FLAGS_rpc_deadline of the jobs, in seconds (6)")
    parser.add_argument("--out", help="the folder of results (in the temporary directory, by MPI and seed)")
    for axis, values in AXES.items():
        parser.add_argument(f"--{axis}", choices=values, action="append",
                            help=f"only these, of the drawn: {', '.join(values)}")
    return parser.parse_args(argv)


def chosen(told):
    """The trials that the command line speaks of."""
    drawn = [draw(told.seed, number) for number in told.only or range(told.count)]
    return [trial for trial in drawn
            if all(getattr(told, axis) is None or getattr(trial, axis) in getattr(told, axis) for axis in AXES)]


def run_all(trials, told, kept, done):
    """Run them, and print a line for each as it ends."""
    with ThreadPoolExecutor(told.jobs) as pool:
        running = [pool.submit(run, trial, told.deadline) for trial in trials]
        try:
            for future in as_completed(running):
                result = future.result()
                done[result.trial.number] = result
                kept.add(result)
                print(report.row(result), flush=True)
                if told.only:
                    print(result.words)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def again(told, number):
    """The command that runs one of them again."""
    return f"python -m tests.mpi.faults --seed {told.seed} --only {number}" + \
        (f" --deadline {told.deadline:g}" if told.deadline != 6 else "")


if __name__ == "__main__":
    sys.exit(main())
