"""What nothing follows from is in one table."""

from fleet_mpi.fleet.strategy import CONFIGS, SWITCHES
from fleet_mpi.fleet.without_effect import ACTED_ON, REFUSED, TABLE, TRANSPILER_ACTED_ON
from fleet_mpi.transpile.distribute_transpiler import DEFAULTS


def test_every_switch_of_the_strategy_is_acted_on_refused_or_listed():
    assert ACTED_ON | REFUSED <= {*SWITCHES, *CONFIGS}
    listed = set(TABLE["paddle.distributed.fleet.DistributedStrategy"])
    assert {*SWITCHES, *CONFIGS} == (listed & {*SWITCHES, *CONFIGS}) | ACTED_ON | REFUSED
    assert not listed & (ACTED_ON | REFUSED)


def test_options_of_the_transpiler_that_act_are_options():
    assert TRANSPILER_ACTED_ON <= set(DEFAULTS)
