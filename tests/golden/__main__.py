"""``python -m tests.golden [--against REV] [NAME ...]``: the digests of the recipes, or what differs from another
commit.

The exit code is 1 where a bit differs.
"""

import argparse
import hashlib
import json
import sys

from tests.golden import commits
from tests.golden.recipes import RECIPES, timed


def main(argv=None):
    """Run what is asked for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="recipes to run; all, if none is named")
    parser.add_argument("--against", metavar="REV", help="run the same recipes on this commit too, and compare")
    parser.add_argument("--json", action="store_true", help="print every digest")
    given = parser.parse_args(argv)
    unknown = set(given.names) - {recipe.name for recipe in RECIPES}
    if unknown:
        parser.error(f"no recipe {sorted(unknown)[0]!r}; there are: {'; '.join(recipe.name for recipe in RECIPES)}")
    chosen = [recipe for recipe in RECIPES if not given.names or recipe.name in given.names]
    if given.json:
        sys.stdout.write(json.dumps({recipe.name: [[*key, digest] for key, digest in recipe.run().items()]
                                     for recipe in chosen}))
        return 0
    return compare(chosen, given.against) if given.against else show(chosen)


def show(chosen):
    """Print one digest per recipe."""
    for recipe in chosen:
        found, seconds = timed(recipe)
        sys.stdout.write(f"{recipe.name:36}{whole(found)[:16]}  {len(found):4} digests, {seconds:5.1f} s\n")
        sys.stdout.flush()
    return 0


def compare(chosen, revision):
    """Print what differs, recipe by recipe."""
    with commits.checked_out(revision) as folder:
        theirs = commits.run_there(folder, [recipe.name for recipe in chosen])
    differ = 0
    for recipe in chosen:
        found = recipe.run()
        difference = commits.first_difference(found, theirs[recipe.name])
        differ += difference is not None
        sys.stdout.write(f"{recipe.name:36}{'equal' if difference is None else 'differs at ' + difference}\n")
        sys.stdout.flush()
    return int(differ > 0)


def whole(found):
    """One digest of all."""
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
