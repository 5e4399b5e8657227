"""The generated pages have every entry of the tables that they are made from; every table is on a page."""

import importlib.util
import re

import pytest

from fleet_mpi import errors, settings
from fleet_mpi.fleet import without_effect
from fleet_mpi.fluid import refused_modules
from fleet_mpi.launch import flags
from fleet_mpi.modes import MODES
from fleet_mpi.update_rules import RULES
from tests.documents import PAGES, ROOT


def extension(name):
    """A module of docs/extensions, which are no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "extensions" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tables = extension("tables")


def plain(text):
    """Words without the marks of reStructuredText, on one line."""
    return " ".join(re.sub(r"``|\\", "", text).split())


def test_every_table_is_on_one_page():
    shown = [name for text in PAGES.values() for name in re.findall(r"^\.\. generated:: (\w+)$", text, re.M)]
    assert sorted(shown) == sorted(tables.TABLES)


def test_settings_have_all_names_and_meanings():
    text = tables.settings_table()
    for setting in settings.TABLE:
        assert text.count(f"``{setting.name}`` (") == 1, setting.name
        assert plain(setting.meaning) in plain(text), setting.name


def test_flags_have_all_names_and_meanings():
    text = tables.flags_table()
    for flag in flags.TABLE:
        assert all(f"``{name}``" in text for name in flag.names), flag.name
        assert plain(flag.meaning) in plain(text), flag.name


def test_modes_have_all_options():
    text = tables.modes_table()
    for name, mode in MODES.items():
        assert f"``{name}``\n" in text
        assert all(f"``{option}`` (" in text for half in (mode.worker, mode.server) for option in half.options), name


def test_rules_have_all_hyper_parameters_and_states():
    text = tables.rules_table()
    for name, rule in RULES.items():
        assert f"``{name}``\n" in text
        assert all(f"``{key}={value!r}``" in text for key, value in rule.hypers.items()), name
        assert all(f"``{state.name}``" in text for state in rule.states), name


def test_exit_codes_have_every_kind_of_error():
    text = tables.exit_codes_table()
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.FleetError)]
    assert len(kinds) > 10 and not [kind for kind in kinds if f"``{kind.__name__}``" not in text]
    assert {kind.exit_code for kind in kinds} | {0} == {int(code) for code in re.findall(r"^(\d+)$", text, re.M)}


@pytest.mark.parametrize("code", sorted({kind.exit_code for kind in tables._kinds(errors.FleetError)} | {0}))
def test_the_page_of_failures_has_every_exit_code(code):
    assert re.search(rf"^{code}  +\w", PAGES["docs/failures.rst"], re.M)


@pytest.mark.parametrize("owner", without_effect.TABLE)
def test_names_without_effect_are_listed(owner):
    text = tables.without_effect_table()
    assert f"{owner}\n" in text
    assert not [name for name in without_effect.TABLE[owner] if f"``{name}``" not in text]


def test_names_of_both_versions_are_listed_and_refused_ones_apart():
    names, refused = tables.names_table("fluid"), tables.refused_table("fluid")
    assert "``paddle.fluid.layers``" in names and "``fc``" in names and "``DistributeTranspiler``" in names
    assert "``paddle.nn.functional``" in tables.names_table("paddle")
    path, (words, sentence) = next(item for item in refused_modules.TABLE.items() if item[0] == "fluid.inferencer")
    assert f"``paddle.{path}.{words}``" in refused and plain(sentence[1:]) in plain(refused)
