"""Where PyTorch is not installed: a sentence says so, and nothing else of the package needs it."""

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["torch"] = None
import fleet_mpi, fleet_mpi.door.joining, fleet_mpi.fluid
try:
    import fleet_mpi.torch
except fleet_mpi.errors.EnvironmentProblem as problem:
    print(problem)
"""


def test_a_missing_torch_is_told():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert ended.stdout.startswith("fleet_mpi.torch needs PyTorch, any build: pip install torch"), ended.stderr
