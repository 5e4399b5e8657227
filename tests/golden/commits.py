"""Another commit's net, in a worktree of its own, and the first difference between two."""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@contextlib.contextmanager
def checked_out(revision):
    """The folder of a commit; it gets this net if it has none."""
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", folder, revision], check=True)
        try:
            its_own = Path(folder, "tests", "golden")
            if not its_own.exists():
                shutil.copytree(HERE, its_own, ignore=shutil.ignore_patterns("__pycache__"))
            yield folder
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", folder], check=True)


def run_there(folder, names):
    """{recipe: {(step, variable): digest}} of the commit in this folder."""
    ended = subprocess.run([sys.executable, "-m", "tests.golden", "--json", *names], cwd=folder, stdout=subprocess.PIPE,
                           text=True)
    if ended.returncode:
        raise SystemExit(f"the other commit's net ended with code {ended.returncode}")
    return {name: {(step, variable): digest for step, variable, digest in lines}
            for name, lines in json.loads(ended.stdout).items()}


def first_difference(ours, theirs):
    """A sentence, or None where all digests are equal."""
    if set(ours) != set(theirs):
        only = min(set(ours) ^ set(theirs))
        return f"step {only[0]}: {only[1]} is only in {'this' if only in ours else 'the other'} commit"
    different = [key for key in sorted(ours) if ours[key] != theirs[key]]
    return f"step {different[0][0]}: {different[0][1]}" if different else None
