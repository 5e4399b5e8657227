"""The rules of style that a machine can check."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "fleet_mpi"
LONGEST_FILE = 500
LONGEST_FUNCTION = 60

# A pipe command's output is its stdout, a command's table too; what a script reads there, it asked for. A
# model's progress goes where the original's goes. A loader's
# worker flushes what the script's dataset printed.
MAY_WRITE_TO_STDOUT = ("examples/", "data/multislot.py", "data/worker_process.py", "launch/plan_command.py",
                       "launch/doctor.py", "launch/gpu_check/__init__.py", "launch/names_command.py",
                       "launch/export_command.py", "hapi/progress.py", "collective/cuda_trial.py",
                       "program/graph/model_stat.py")
MAY_PRINT_TO_STDERR = ("__main__.py", "launch/")

# What the functions of an op class are for, program/graph/registry.py tells once for all of them.
OF_AN_OP = ("infer", "run", "grad", "infer_grad", "make_grad")

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def files(*folders):
    """All source files in these folders of the repository, as relative paths."""
    return [path.relative_to(ROOT).as_posix()
            for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def tree_of(path):
    """The syntax tree of a file."""
    return ast.parse((ROOT / path).read_text(), path)


def without_docstring(tree):
    """Names of the module, public classes, functions and methods that lack a docstring."""
    if not ast.get_docstring(tree):
        yield "the module"
    for node in tree.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_"):
            yield from _without_docstring(node, node.name)


def _without_docstring(node, name):
    if not ast.get_docstring(node) and not _changes_a_property(node) and not _is_of_an_op(node):
        yield name
    if isinstance(node, ast.ClassDef):
        for inner in node.body:
            if isinstance(inner, (*FUNCTIONS, ast.ClassDef)) and not inner.name.startswith("_"):
                yield from _without_docstring(inner, f"{name}.{inner.name}")


def _changes_a_property(node):
    """A setter or deleter shares the docstring of its property."""
    return any(isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter")
               for decorator in node.decorator_list)


def _is_of_an_op(node):
    """A function of an op class takes the Call, ``k``, first; ``make_grad`` takes backward's ``walk``."""
    first = "walk" if node.name == "make_grad" else "k"
    return node.name in OF_AN_OP and isinstance(node, FUNCTIONS) and [a.arg for a in node.args.args[:1]] == [first]


@pytest.mark.parametrize("path", files("fleet_mpi"))
def test_everything_public_has_a_docstring(path):
    missing = list(without_docstring(tree_of(path)))
    assert not missing, f"{path}: no docstring for {', '.join(missing)}"


# Rooms whose public functions all say what they take and give.
HINTED = ("arrays.py", "errors.py", "notices.py", "settings.py", "update_rules.py", "placement/", "modes/",
          "wire/", "ranks/", "parameter_server/", "collective/", "connections/", "checkpoint/", "fleet/", "launch/",
          "transpile/", "export/", "door/", "torch/")


def without_hints(tree):
    """Names of public functions and methods with an argument or result without a hint."""
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else []
        for function, bound in ((node, 0), *((inner, 1) for inner in inside)):
            if isinstance(function, FUNCTIONS) and not function.name.startswith("_"):
                static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in function.decorator_list)
                given = function.args
                named = (given.posonlyargs + given.args)[0 if static else bound:] + given.kwonlyargs
                if function.returns is None or not all(one.annotation for one in named):
                    yield function.name


@pytest.mark.parametrize("begin", HINTED)
def test_every_room_with_hints_exists(begin):
    assert any(path.removeprefix("fleet_mpi/").startswith(begin) for path in files("fleet_mpi"))


def test_public_functions_of_seams_and_doors_have_hints():
    wrong = [f"{path}: {name}" for path in files("fleet_mpi") if path.removeprefix("fleet_mpi/").startswith(HINTED)
             for name in without_hints(tree_of(path))]
    assert not wrong, "\n".join(wrong)


def test_no_file_is_too_long():
    lengths = {path: len((ROOT / path).read_text().splitlines())
               for path in files("fleet_mpi", "benchmarks", "tests")}
    assert not {path: length for path, length in lengths.items() if length > LONGEST_FILE}


def test_no_function_is_too_long():
    wrong = [f"{path}:{node.lineno} {node.name}: {node.end_lineno - node.lineno + 1} lines"
             for path in files("fleet_mpi", "benchmarks", "tests") for node in ast.walk(tree_of(path))
             if isinstance(node, FUNCTIONS) and node.end_lineno - node.lineno >= LONGEST_FUNCTION]
    assert not wrong, "\n".join(wrong)


def goes_to_stderr(call):
    """Whether a call of print says file=sys.stderr."""
    return any(keyword.arg == "file" and ast.unparse(keyword.value) == "sys.stderr"
               for keyword in call.keywords)


def writes(tree):
    """(line, what) for every use of print, or of stdout by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield node.lineno, "print to stderr" if goes_to_stderr(node) else "print"
        elif isinstance(node, ast.Attribute) and node.attr in ("stdout", "__stdout__") \
                and ast.unparse(node.value) == "sys":
            yield node.lineno, "sys.stdout"


def test_the_library_prints_nothing():
    wrong = []
    for path in files("fleet_mpi"):
        inside = path.removeprefix("fleet_mpi/")
        if not inside.startswith(MAY_WRITE_TO_STDOUT):
            wrong += [f"{path}:{line} {what}" for line, what in writes(tree_of(path))
                      if what != "print to stderr" or not inside.startswith(MAY_PRINT_TO_STDERR)]
    assert not wrong, "\n".join(wrong)


def test_no_file_names_this_machine():
    marks = ("/work/", "/opt/", "/home/")
    wrong = [f"{path}: {mark}" for path in files("fleet_mpi", "benchmarks")
             for mark in marks if mark in (ROOT / path).read_text()]
    assert not wrong, "\n".join(wrong)
