"""Every folder's ``__init__`` docstring is the map of its files: all of them, and nothing that is not there."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "fleet_mpi"
NAMES_ONLY = ("fluid", "paddle")   # of scripts: what is there is told by the original
FOLDERS = sorted(folder for folder in {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")}
                 if folder.parts[:1] not in [(name,) for name in NAMES_ONLY])


def entries(text):
    """The names at the head of a map's lines: four blanks, names between commas, two blanks, what they are."""
    heads = re.findall(r"^ {4}(\S.*?)(?:  .*)?$", text, re.MULTILINE)
    return [name.removesuffix("/") for head in heads for name in head.split(", ")]


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_folder_has_a_map_of_its_files(folder):
    here = PACKAGE / folder
    text = ast.get_docstring(ast.parse((here / "__init__.py").read_text()), clean=False)
    there = {path.stem for path in here.glob("*.py") if path.stem != "__init__"}
    there |= {path.parent.name for path in here.glob("*/*.py")}
    named = entries(text)
    assert len(named) == len(set(named)), "named twice"
    assert set(named) <= there, "no longer there"
    assert there <= {*named, *re.findall(r"``(\w+)``", text)}, "without a line"
