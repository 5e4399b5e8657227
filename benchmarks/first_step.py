"""How long from the start of Python to the end of the first step of fit_a_line?

As a script it takes that step; ``seconds`` starts it again and again and measures whole processes.
"""

import subprocess
import sys
import time

from benchmarks.rounds import ROOT


def seconds(repeats):
    """Wall time of each of ``repeats`` fresh processes; one before them fills the compiler's cache."""
    taken = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "benchmarks.first_step"], cwd=ROOT, check=True)
        taken.append(time.perf_counter() - began)
    return taken[1:]


def main():
    """One step, as a script would take it."""
    from benchmarks import ours
    ours.fit_a_line(20)()


if __name__ == "__main__":
    main()
