"""The Python listings of the guides in ``../shared/seeds``, where they lie beside this checkout."""

import re
import textwrap
from pathlib import Path

import pytest

SEEDS = Path(__file__).resolve().parents[2].parent / "shared" / "seeds"
FENCED = re.compile(r"^``` ?python\n(.*?)^```", re.M | re.S)
DIRECTIVE = re.compile(r"^( *)\.\. code(?:-block)?:: (?:python|py)\n((?:\1 +.*\n| *\n)+)", re.M)

are_here = pytest.mark.skipif(not SEEDS.is_dir(),
                              reason="the guides (../shared/seeds) are not beside this checkout")


def listings(number):
    """The Python listings of a guide, in order."""
    text = next(SEEDS.glob(f"{number}_*")).read_text()
    found = [(match.start(), match[1]) for match in FENCED.finditer(text)]
    found += [(match.start(), textwrap.dedent(match[2])) for match in DIRECTIVE.finditer(text)]
    # One page has a blank behind a backslash that continues a line.
    return [re.sub(r"\\ +\n", "\\\\\n", code) for _, code in sorted(found)]
