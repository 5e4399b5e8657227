"""Imports go downwards only, heavy libraries stay behind their gates, and importing starts nothing."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import OF_MPI

PACKAGE = Path(__file__).parents[2] / "fleet_mpi"

# From the lowest to the highest. A part imports itself, lower rows, and those to its left in its own row.
LAYERS = (
    ("__init__", "errors", "names", "settings", "arrays", "notices", "command_line"),
    ("kernels",),
    ("ranks", "update_rules"),
    ("wire", "placement", "program"),
    ("parameter_server", "collective"),
    ("modes", "transpile"),
    ("connections", "runtime"),
    ("checkpoint", "data", "metrics", "export"),
    ("door", "fleet", "hapi"),
    ("fluid", "paddle", "torch"),
    ("launch", "testing", "examples", "__main__"),
)
HEIGHT = {part: (height, place) for height, layer in enumerate(LAYERS) for place, part in enumerate(layer)}

# By strings, to be imported when they are first used: {file: parts above its own}.
MAY_NAME_HIGHER = {
    "__init__.py": {"door"},   # ``fleet_mpi.join``
    "errors.py": {"settings", "notices", "ranks", "arrays"},   # helpers, which are not in a namespace of ours
    # Whoever makes a program need not import what will run it.
    "program/graph/registry.py": {"runtime", "checkpoint"},
    "transpile/distribution.py": {"runtime", "checkpoint"},
    "transpile/collective.py": {"runtime"},
    # The original's names cross the other way.
    "names/paddle.py": {"paddle"}, "fluid/core.py": {"paddle"}, "fluid/dygraph.py": {"paddle"},
    "paddle/standing_in.py": {"launch"},
}
MODULE = r"fleet_mpi\.(\w+)[\w.:]*$"

MAY_IMPORT_MPI = {"ranks/cluster.py", "wire/mpi.py", "collective/library.py", "collective/cuda_trial.py"}
# By a test: only with these it can come to depend on the MPI that is installed.
NEED_MPI = ("mpi4py", "fleet_mpi.wire.mpi", "fleet_mpi.collective.library", "fleet_mpi.launch.mpirun", "tests.mpi.jobs",
            "benchmarks.allreduce", "benchmarks.mpi_ranks", "benchmarks.push_pull")
# One way through the house: a job is what connections make of its parts; tests of the parts have them apart.
MAY_ASSEMBLE = ("fleet_mpi/connections/", "tests/unit/parameter_server/")
MAY_COMPILE = ("arrays.py", "kernels/", "placement/")
# Those of setup.cfg, by the name they are imported under; the last six are extras, and jax is for an example.
DEPENDENCIES = {"numpy", "numba", "mpi4py", "threadpoolctl", "cupy", "matplotlib", "PIL", "safetensors", "onnx",
                "torch", "jax"}


def sources():
    """(path within the package, part of the layers) of every source file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        yield inside.as_posix(), inside.parts[0].removesuffix(".py")


def imported_names(inside):
    """The full name of everything a file imports, in functions too."""
    here = ("fleet_mpi", *Path(inside).parent.parts)
    for node in ast.walk(ast.parse((PACKAGE / inside).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[:len(here) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imported_parts(inside):
    """The parts of this package that a file imports."""
    for name in imported_names(inside):
        first, *rest = name.split(".")
        if first == "fleet_mpi" and rest and rest[0] in HEIGHT:
            yield rest[0]


def named_in_strings(inside):
    """The parts of this package that a file's strings name as modules: what it imports later, or lets import."""
    for node in ast.walk(ast.parse((PACKAGE / inside).read_text())):
        found = isinstance(node, ast.Constant) and isinstance(node.value, str) and re.match(MODULE, node.value)
        if found and found[1] in HEIGHT:
            yield found[1]


def imported_libraries(inside):
    """The top-level names of other packages that a file imports."""
    return {name.partition(".")[0] for name in imported_names(inside)} - {"fleet_mpi"}


def test_every_part_has_its_place_in_the_layers():
    unknown = {part for _, part in sources()} - set(HEIGHT)
    assert not unknown, f"say in LAYERS where {sorted(unknown)} belong"


def test_imports_go_downwards_only():
    wrong = [f"{path} imports {other}" for path, part in sources() for other in imported_parts(path)
             if other != part and HEIGHT[other] >= HEIGHT[part]]
    assert not wrong, "\n".join(wrong)


def test_modules_above_are_named_by_strings_where_that_is_known():
    found = {path: {other for other in named_in_strings(path) if other != part and HEIGHT[other] >= HEIGHT[part]}
             for path, part in sources()}
    assert {path: parts for path, parts in found.items() if parts} == MAY_NAME_HIGHER


def test_mpi4py_is_imported_in_four_files_only():
    wrong = {path for path, _ in sources() if "mpi4py" in imported_libraries(path)} - MAY_IMPORT_MPI
    assert not wrong


def test_tests_that_import_mpi_run_with_every_mpi(depends_on_mpi):
    tests = PACKAGE.parent / "tests"
    for path in sorted(tests.rglob("test_*.py")):
        names = set(imported_names(path))
        assert depends_on_mpi(path) or not any(name.startswith(NEED_MPI) for name in names), (
            f"{path.relative_to(tests)} imports what needs MPI: with a second one CI runs only what tests/conftest.py "
            f"lists")


def test_what_runs_with_every_mpi_exists():
    missing = [str(path) for path in OF_MPI if not path.exists()]
    assert not missing, f"tests/conftest.py lists what is not there: {', '.join(missing)}"


def test_clients_and_servers_are_put_together_in_connections_only():
    paths = [path.relative_to(PACKAGE.parent).as_posix() for folder in ("fleet_mpi", "benchmarks", "tests")
             for path in sorted((PACKAGE.parent / folder).rglob("*.py"))]
    wrong = [f"{path}:{number}" for path in paths if not path.startswith(MAY_ASSEMBLE)
             for number, line in enumerate((PACKAGE.parent / path).read_text().splitlines(), 1)
             if re.search(r"(?<!class )\b(?:Client|Server)\(", line)]
    assert not wrong, f"take fleet_mpi/connections: {', '.join(wrong)}"


def test_numba_and_cupy_are_imported_in_arrays_kernels_and_placement_only():
    wrong = [path for path, _ in sources()
             if {"numba", "cupy"} & imported_libraries(path) and not path.startswith(MAY_COMPILE)]
    assert not wrong


@pytest.mark.skipif(not hasattr(sys, "stdlib_module_names"), reason="Python 3.9 has no list of its modules")
def test_only_stated_dependencies_are_imported():
    allowed = DEPENDENCIES | set(sys.stdlib_module_names)
    wrong = {path: sorted(imported_libraries(path) - allowed) for path, _ in sources()
             if imported_libraries(path) - allowed}
    assert not wrong


@pytest.mark.parametrize("name", ("fleet_mpi", "fleet_mpi.fluid", "fleet_mpi.paddle"))
def test_importing_starts_neither_mpi_nor_a_compiler_nor_a_thread(name):
    program = (f"import {name}, sys, threading; "
               "print([heavy for heavy in ('mpi4py', 'mpi4py.MPI', 'numba', 'cupy', 'matplotlib', 'onnx', "
               "'safetensors', 'torch') if heavy in sys.modules], threading.active_count())")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                           cwd=PACKAGE.parent)
    assert (ended.stdout, ended.stderr) == ("[] 1\n", "")
