"""The code blocks of README.rst, CONTRIBUTING.rst and the pages in docs/, by language.

How each language is tested stands in docs/contributing.rst: ``python`` runs in one process (or must only compile, as a
``fragment``), ``console`` runs line by line, ``sh`` starts jobs, ``bash`` names what must exist, ``text`` is shown,
``diff`` leads from a script of the page to one that runs over MPI (tests/mpi/test_torch.py).
"""

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

from fleet_mpi import fluid
from fleet_mpi.export import export
from tests.unit.program.building import from_scratch

ROOT = Path(__file__).parents[1]
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text()
         for path in (ROOT / "README.rst", ROOT / "CONTRIBUTING.rst", *sorted((ROOT / "docs").rglob("*.rst")))}
LANGUAGES = {"python", "console", "sh", "bash", "text", "diff"}
LIBRARIES = "torch", "jax", "onnx", "onnxruntime", "safetensors"
_BLOCK = re.compile(r"^( *)\.\. code-block:: (\w+)\n((?:\1 +:.*\n)*)\n((?:\1 +.*\n|\n)+)", re.M)


class Block(NamedTuple):
    """One code block of a page."""

    page: str
    language: str
    options: str
    text: str

    @property
    def is_fragment(self):
        """Whether it is part of a script that the page does not show."""
        return "fragment" in self.options


def blocks(language, *pages):
    """The blocks in a language, of all pages or of some."""
    return [block for block in _all() if block.language == language and (not pages or block.page in pages)]


def languages():
    """Every language that a page uses."""
    return {block.language for block in _all()}


def without_language(page):
    """The lines of a page that begin a block by ``::`` alone: no test would see it."""
    return re.findall(r"^(?! *\.\. ).*::$", PAGES[page], re.M)


def _all():
    return [Block(page, match[2], match[3], textwrap.dedent(match[4]).strip())
            for page, text in PAGES.items() for match in _BLOCK.finditer(text)]


def commands(language, *pages):
    """Every line once, in the order of the pages; lines that end with a backslash go on."""
    lines = [line for block in blocks(language, *pages) for line in block.text.replace("\\\n", " ").splitlines()]
    return list(dict.fromkeys(line.removeprefix("$ ") for line in lines))


def section(page, title):
    """The text of a page below a title, up to the next one."""
    return re.split(r"^[^\s.].*\n[-=]{3,}\n", PAGES[page].partition(f"\n{title}\n")[2].partition("\n")[2],
                    maxsplit=1, flags=re.M)[0]


def skip_what_is_not_here(code):
    """Skip the test of a listing that names libraries which are not installed."""
    for library in sorted({*re.findall(r"\w+", code)} & {*LIBRARIES}):
        pytest.importorskip(library, reason=f"{library} is not installed")


def lay_out(code, folder):
    """Put into a folder what a listing finds there: what a script of digits has saved, and the model's export."""
    if re.search(r"digits\.model|checkpoints/last", code):
        _save_digits(folder)
    if "digits.model.onnx" in code:
        export(str(folder / "digits.model"), "onnx", str(folder / "digits.model.onnx"))


def _save_digits(folder):
    with from_scratch():
        probabilities = fluid.layers.fc(fluid.layers.data("img", [1, 28, 28]), 10, act="softmax")
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_inference_model(str(folder / "digits.model"), ["img"], [probabilities], exe)
        fluid.io.save_persistables(exe, str(folder / "checkpoints" / "last"))
