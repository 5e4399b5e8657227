"""The stand-in against a table of what cupy has, written by ``python -m tests.unit.testing.cupy_table``; and the names
that the package asks of ``xp``."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import fleet_mpi
from fleet_mpi.testing import device, stand_in
from tests.unit.testing import cupy_table

TABLE = cupy_table.read()
PACKAGE = Path(fleet_mpi.__file__).parent


def arguments_of(function):
    """The names under which numpy takes arguments; None where it does not say."""
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    return {one.name for one in found if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}


# Functions of which the stand-in has its own form, which takes fewer arguments; and one that is elementwise in cupy.
OWN = [*stand_in._AS_CUPY, "fix"]


def keywords_let_through(name, function):
    """Arguments that numpy's function takes and that the stand-in does not refuse."""
    refused = stand_in._REFUSED_KEYWORDS.get(name, stand_in._REFUSED_ANYWHERE)
    return (arguments_of(function) or set()) - set(refused)


@pytest.mark.parametrize("name", [name for name in dir(device) if not name.startswith("_")])
def test_cupy_has_every_name_of_the_stand_in(name):
    assert name in TABLE["names"] or name in ("lib",)


@pytest.mark.parametrize("name", [one for one in stand_in._FUNCTIONS + stand_in._CREATORS if one not in OWN])
def test_a_function_takes_no_keyword_that_cupy_refuses(name):
    original, arguments = getattr(np, name), TABLE["names"][name]
    # The first argument is an array, which nobody gives by its name.
    first = set(list(inspect.signature(original).parameters)[:1]) if arguments_of(original) else set()
    assert "kwargs" in arguments or keywords_let_through(name, original) - first <= set(arguments)


@pytest.mark.parametrize("name", stand_in._METHODS)
def test_a_method_takes_no_keyword_that_cupy_refuses(name):
    assert keywords_let_through(name, getattr(np.ndarray, name)) - {"self"} <= set(TABLE["methods"][name])


@pytest.mark.parametrize("name", stand_in._UFUNCS)
def test_elementwise_functions_are_elementwise_in_cupy_and_take_its_keywords(name):
    assert name in TABLE["ufuncs"] + TABLE["gufuncs"]
    assert set(stand_in.Ufunc.KEYWORDS) <= set(TABLE["ufunc_keywords"])


def test_out_of_a_generalised_function_goes_by_name_only():
    assert TABLE["gufuncs"] == ["matmul"]
    with pytest.raises(AttributeError, match="out by its name only"):
        device.matmul(*(device.ones((2, 2)) for _ in range(3)))


def test_at_takes_no_type_that_cupy_refuses():
    for name, (kinds, _) in stand_in.Ufunc._AT.items():
        assert set(kinds) <= set(TABLE["at"][name]), name


def names_asked_of(path):
    """(name, line) of every ``xp.name`` and ``k.xp.name`` in a file, but for what every module has (``__name__``)."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and not node.attr.startswith("__"):
            of = node.value
            if isinstance(of, ast.Name) and of.id == "xp" or isinstance(of, ast.Attribute) and of.attr == "xp":
                yield node.attr, node.lineno


def test_cupy_has_every_name_that_the_package_asks_of_xp():
    asked = [(name, f"{path.relative_to(PACKAGE)}:{line}") for path in sorted(PACKAGE.rglob("*.py"))
             for name, line in names_asked_of(path)]
    assert len(asked) > 500
    assert [place for name, place in asked if name not in TABLE["names"]] == []


@pytest.mark.parametrize("name", ("norm", "inv", "cholesky"))
def test_cupy_has_what_the_stand_in_has_of_linalg(name):
    assert hasattr(device.linalg, name) and name in TABLE["linalg"]
