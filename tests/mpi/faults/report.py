"""The table of a run of trials, a line for every cause of what was wrong, and the file that keeps results."""

import json
from collections import defaultdict
from pathlib import Path

from tests.mpi.faults.run import Result
from tests.mpi.faults.trial import Trial

COLUMNS = (("#", 4), ("fault", 11), ("role", 12), ("phase", 11), ("mode", 17), ("launcher", 14), ("door", 7),
           ("s+w", 3), ("ended", 5), ("seconds", 7), ("code", 4), ("named", 13), ("procs", 5), ("shm", 3), ("files", 5),
           ("wrong", 0))


def header():
    """The names of the columns."""
    return _line([name for name, _ in COLUMNS])


def row(result):
    """A line of the table."""
    trial = result.trial
    return _line([trial.number, trial.fault, trial.role, trial.phase, trial.mode, trial.launcher, trial.door,
                  f"{trial.servers}+{trial.workers}", "yes" if result.ended else "NO",
                  "-" if result.seconds is None else f"{result.seconds:.1f}",
                  "-" if result.code is None else result.code,
                  result.named, len(result.processes), "?" if result.segments is None else len(result.segments),
                  len(result.files), ", ".join(result.wrong) or "ok"])


def summary(results, again):
    """How many were right, and every cause of those that were not; ``again(number)`` is the command for one."""
    wrong = [result for result in results if result.wrong]
    hangs = sum(not result.ended for result in results)
    lines = [f"{len(results)} faults: {len(results) - len(wrong)} as they must be, {len(wrong)} not, {hangs} hang(s)"]
    causes = defaultdict(list)
    for result in wrong:
        for cause in result.wrong:
            causes[cause].append(result.trial)
    for cause, trials in sorted(causes.items(), key=lambda item: -len(item[1])):
        where = sorted({f"{trial.fault} of {trial.role} at {trial.phase}" for trial in trials})
        lines.append(f"{len(trials):4}  {cause}: {'; '.join(where[:6])}{'; ...' if len(where) > 6 else ''}")
        lines.append(f"      {again(trials[0].number)}")
    return "\n".join(lines)


class Kept:
    """A folder with the results of a seed: what is there is not run again."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "results.jsonl"

    def read(self):
        """{number: Result} of what was run before; the last one counts."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        results = [Result(**json.loads(line)) for line in lines]
        results = [result._replace(trial=Trial(*result.trial)) for result in results]
        return {result.trial.number: result for result in results}

    def add(self, result):
        """Keep it; what a job wrote that was not as it must be lies in a file of its own."""
        with open(self.path, "a") as file:
            file.write(json.dumps(result._replace(words="")._asdict()) + "\n")
        path = self.folder / f"{result.trial.number}.txt"
        if result.wrong:
            path.write_text(f"{header()}\n{row(result)}\n{result.words}\n")
        else:
            path.unlink(missing_ok=True)


def _line(words):
    return "  ".join(f"{word!s:{width}}" for word, (_, width) in zip(words, COLUMNS)).rstrip()
