"""What of each tier is here, what is refused and with which sentence; and every module path can be imported.

``python -m tests.unit.test_surface_tiers`` prints it.
"""

import collections
import json
import subprocess
import sys

import pytest

from fleet_mpi.errors import NotBuilt
from tests.unit.fluid.surface_names import ABSENT, LISTS, TIERS, is_here, refusal_of, surface

NAMES = {record["name"]: record["tier"] for kind in ("symbols", "imported") for record in surface()[kind]}
MODULES = (LISTS / "modules.txt").read_text().split()
IMPORT_ALL = """
import importlib, json, sys
failed = {}
for module in json.loads(sys.argv[1]):
    try:
        importlib.import_module(module)
    except Exception as error:
        failed[module] = repr(error)
print(json.dumps(failed))
"""


def state(name):
    """Whether a name is "here", "refused" when it is used, or "absent"."""
    if not is_here(name):
        return "absent"
    return "here" if refusal_of(name) is None else "refused"


def counted():
    """{tier: {state: number of names}}."""
    return {tier: dict(collections.Counter(state(name) for name, of in NAMES.items() if of == tier)) for tier in TIERS}


REFUSED = sorted(name for name in NAMES if state(name) == "refused")


def test_the_first_tiers_are_here_as_a_whole():
    assert counted()["T0"] == {"here": 132} and counted()["T1a"] == {"here": 216}


def test_what_is_absent_of_the_other_tiers_has_a_reason():
    found = counted()
    assert {tier: found[tier].get("absent", 0) for tier in TIERS} == dict(T0=0, T1a=0, T1b=4, T2=0, documented=0)
    assert found["T1b"]["here"] >= 223 and found["T2"]["here"] >= 90 and found["documented"]["here"] >= 137


def test_of_the_contrib_layers_that_are_listed_one_is_refused():
    listed = [name for name in NAMES if name.startswith("paddle.fluid.contrib.layers.")]
    assert len(listed) >= 12 and [name for name in listed if state(name) != "here"] == [
        "paddle.fluid.contrib.layers.search_pyramid_hash"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_name_can_be_imported_and_says_why_it_cannot_be_used(name):
    from tests.unit.fluid.surface_names import resolve
    with pytest.raises(NotBuilt, match=".+: .+") as refusal:
        resolve(name)(1, some=2)
    assert refusal_of(name) in str(refusal.value) and "\n" not in str(refusal.value)


def test_every_module_path_can_be_imported(tmp_path):
    (tmp_path / "script.py").write_text(IMPORT_ALL)
    done = subprocess.run([sys.executable, "-m", "fleet_mpi", "script.py", json.dumps(MODULES)], cwd=tmp_path,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {}


def test_importing_fluid_imports_none_of_what_few_scripts_use():
    program = "import sys, fleet_mpi.fluid; print([name for name in sys.modules if name.startswith('fleet_mpi')])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                            check=True).stdout
    rare = ("dygraph", "communicator", "predictor", "program_state", "fleet_util", "key_value_server", "saved_programs",
            "weight_norm", "operator_desc", "fluid.evaluator", "fluid.profiler")
    assert not [name for name in rare if f"{name}'" in loaded]


if __name__ == "__main__":
    for tier, states in counted().items():
        print(tier, *(f"{word} {number}" for word, number in sorted(states.items())))
    for name in REFUSED:
        print(f"{name}: {refusal_of(name)}")
    for name, reason in ABSENT.items():
        print(f"{name} is absent: {reason}")
