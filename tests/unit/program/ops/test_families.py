"""The table of families: every op is in it, and asking for one imports its family, not all of them."""

import subprocess
import sys

import pytest

import fleet_mpi.program.ops as ops

EACH_IN_TURN = """
import importlib, pkgutil
import fleet_mpi.program.ops as ops
from fleet_mpi.program.graph import registry
for family, types in ops.FAMILIES.items():
    importlib.import_module(f"{ops.__name__}.{family}")
    print(family, *[type for type in types.split() if type not in registry._OPS])
for module in pkgutil.iter_modules(ops.__path__):
    importlib.import_module(f"{ops.__name__}.{module.name}")
print("of no family:", *[type for type in registry._OPS if not {type, type.removesuffix("_grad")} & {*ops.FAMILY_OF}])
"""
ASKED_FOR = """
import sys
from fleet_mpi.program.graph import registry
before = set(sys.modules)
registry.find(sys.argv[1])
print(*[name for name in sys.modules if name.startswith("fleet_mpi.program.ops.") and name not in before])
"""


def said_by(script, *arguments):
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True,
                          timeout=60).stdout


def test_every_family_has_what_the_table_says_and_no_op_is_missing():
    assert said_by(EACH_IN_TURN).splitlines() == [*ops.FAMILIES, "of no family:"]


def test_no_op_is_in_two_families():
    types = [type for listed in ops.FAMILIES.values() for type in listed.split()]
    assert len(types) == len(set(types))


@pytest.mark.parametrize("type", ("relu", "relu_grad"))
def test_an_op_that_is_asked_for_imports_its_family_and_not_the_others(type):
    imported = said_by(ASKED_FOR, type).split()
    assert "fleet_mpi.program.ops.activation" in imported
    assert len(imported) < 4, imported  # what it builds on
