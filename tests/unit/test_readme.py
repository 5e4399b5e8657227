"""Every sentence of the README that a machine can check: its code blocks, commands and tables."""

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

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.rst").read_text()


def blocks(language):
    """The contents of all code blocks in a language."""
    found = re.findall(rf"\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", README)
    return [re.sub(r"^    ", "", block, flags=re.M).strip() for block in found]


COMMANDS = [line for block in blocks("console") for line in block.splitlines()]


@pytest.mark.parametrize("code", blocks("python"))
def test_code_runs(code, tmp_path):
    result = run([sys.executable, "-c", code], tmp_path)
    assert float(result.stdout.split()[-1]) < 0.01, result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command, tmp_path):
    words = shlex.split(command)
    assert words[0] == "python"
    run([sys.executable, *words[1:]], tmp_path)


def run(words, folder):
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result


def test_there_are_blocks_to_run():
    assert len(blocks("python")) >= 1 and len(COMMANDS) >= 5


def test_every_setting_is_in_the_table_with_its_meaning():
    table = " ".join(README.partition("\nSettings\n")[2].partition("\nSpeed\n")[0].split())
    for setting in settings.TABLE:
        assert f"``{setting.name}``" in table, setting.name
        assert setting.meaning in table, setting.name


MODE = re.compile(r"^``(\w+)`` +(``.*?)(?:  +(``.*))?$", re.M)


@pytest.mark.parametrize("mode, first, second", MODE.findall(README.partition("\nModes\n")[2].partition("\n- ``")[0]))
def test_the_table_of_modes_says_what_chooses_each(mode, first, second):
    for cell, options in ((first, DistributeTranspilerConfig()), (second, DistributedStrategy())):
        staleness = 2 if "FLEET_MPI_STALENESS=S" in cell else -1
        for statements in re.findall(r"``(.+?)``", cell):
            for name, value in re.findall(r"(\w+) = ([^;]+)", statements):
                setattr(options, name, eval(value, {"K": 4, "S": 2}))
            config, communicator = config_of(options)
            with settings.override(FLEET_MPI_STALENESS=staleness):
                assert chosen_mode(config, True, communicator)[0] == mode, statements


def test_every_mode_is_in_the_table():
    assert [mode for mode, *_ in MODE.findall(README.partition("\nModes\n")[2].partition("\n- ``")[0])] == list(MODES)


def test_the_layout_names_what_exists_or_says_that_it_is_to_come():
    table = README.partition("\nLayout\n")[2].partition("\nNot built\n")[0]
    rows = re.findall(r"^(``\w.*?``)\s{2,}(.+)$", table, flags=re.M)
    assert len(rows) > 8
    for names, text in rows:
        for name in re.findall(r"``(\w+)``", names):
            exists = (ROOT / "fleet_mpi" / name).exists() or (ROOT / "fleet_mpi" / f"{name}.py").exists()
            assert exists != text.endswith("(to come)"), name
