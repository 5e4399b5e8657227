"""What nothing follows from is in one table, and in the README."""

from pathlib import Path

import pytest

from fleet_mpi.fleet.strategy import CONFIGS, SWITCHES
from fleet_mpi.fleet.without_effect import ACTED_ON, REFUSED, TABLE, TRANSPILER_ACTED_ON
from fleet_mpi.transpile.distribute_transpiler import DEFAULTS

README = (Path(__file__).parents[3] / "README.rst").read_text()
SECTION = README.partition("\nAccepted, without effect\n")[2].partition("\nLicence")[0]


@pytest.mark.parametrize("owner", TABLE)
def test_the_readme_lists_every_name(owner):
    assert owner in SECTION
    words = " ".join(SECTION.split())
    assert not [name for name in TABLE[owner] if f"``{name}``" not in words]


def test_the_readme_lists_nothing_else():
    listed = {name for names in TABLE.values() for name in names}
    rest = SECTION.partition("without_effect.py``.)")[2]
    assert not set(" ".join(rest.split()).split("``")[1::2]) - listed


def test_every_switch_of_the_strategy_is_acted_on_refused_or_listed():
    assert ACTED_ON | REFUSED <= {*SWITCHES, *CONFIGS}
    listed = set(TABLE["paddle.distributed.fleet.DistributedStrategy"])
    assert {*SWITCHES, *CONFIGS} == (listed & {*SWITCHES, *CONFIGS}) | ACTED_ON | REFUSED
    assert not listed & (ACTED_ON | REFUSED)


def test_options_of_the_transpiler_that_act_are_options():
    assert TRANSPILER_ACTED_ON <= set(DEFAULTS)
