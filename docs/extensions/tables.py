"""Reference pages as text: the tables of the package, written in reStructuredText.

Every function returns the text of one table. Knows nothing of Sphinx, so that tests read the same text.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fleet_mpi import errors, settings
from fleet_mpi.fleet import without_effect as idle_names
from fleet_mpi.fluid import refused_modules
from fleet_mpi.launch import flags
from fleet_mpi.modes import MODES
from fleet_mpi.update_rules import RULES

# Whose variables they are, by the beginning of the name.
OWNERS = (("FLEET_MPI_", "Of this package"), ("FLAGS_", "Flags of the original"),
          ("PADDLE_", "Roles, as the original's launchers set them"), ("", "Of the machine and its launchers"))
_OF_ROLES = ("TRAINING_ROLE", "POD_IP")
_OF_SCRIPTS = ("CPU_NUM", "DATA_HOME")


def settings_table() -> str:
    """Every environment variable, by owner: name, type, default, meaning."""
    return "\n".join(line for owner, found in _by_owner() for line in (
        f".. rubric:: {owner}", "", *(line for one in found for line in _setting(one)), ""))


def _by_owner() -> Iterator[tuple[str, list[settings.Setting]]]:
    left = list(settings.TABLE)
    for prefix, owner in OWNERS:
        found = [one for one in left if one.name.startswith(prefix)
                 or (prefix == "FLAGS_" and one.name in _OF_SCRIPTS) or (prefix == "PADDLE_" and one.name in _OF_ROLES)]
        left = [one for one in left if one not in found]
        yield owner, found


def _setting(one: settings.Setting) -> list[str]:
    default = "unset" if one.default in ("", ()) else f"``{one.default}``"
    kind = one.kind.__name__ if isinstance(one.kind, type) else "list"
    return [f"``{one.name}`` ({kind}, {default})", f"    {_plain(one.meaning)}", ""]


def flags_table() -> str:
    """Every flag of the launcher, by group, as ``--help`` has them."""
    lines = []
    for title, group in flags.GROUPS:
        lines += [f".. rubric:: {title.capitalize()}", ""]
        for flag in group:
            names = ", ".join(f"``{name}``" for name in flag.names)
            lines += [f"{names} {_plain(flag.form)}".rstrip(), f"    {_plain(flag.meaning)}", ""]
    return "\n".join(lines)


def modes_table() -> str:
    """Every mode: what it is, what asks for it, its options and their defaults."""
    lines = []
    for name, mode in MODES.items():
        module = next(one for one in list(sys.modules.values()) if getattr(one, "MODE", None) is mode)
        lines += [f"``{name}``", f"    {_plain(_first_sentence(module.__doc__))}", ""]
        asks = "; ".join(f"{field} = {value!r}" for field, value in mode.asks.items())
        lines += [f"    1.x, ``DistributeTranspilerConfig``: ``{asks}``", ""]
        if mode.strategy is not None:
            asks = "; ".join(f"{field} = {value!r}" for field, value in mode.strategy.items())
            lines += [f"    2.x, ``DistributedStrategy``: ``{asks}``", ""]
        options = ", ".join(f"``{option}`` ({default})" for option, default in _options(mode))
        lines += [f"    Options (default): {options or 'none'}.", "",
                  f"    The update rule runs on the {'servers' if mode.servers_update else 'workers'}. Workers "
                  f"{'wait' if mode.in_step else 'do not wait'} for each other.", ""]
    return "\n".join(lines)


def _options(mode: Any) -> Iterator[tuple[str, str]]:
    """(option, default) of both halves, each once."""
    seen = set()
    for half in (mode.worker, mode.server):
        parameters = inspect.signature(half.__init__).parameters
        for option in half.options:
            if option not in seen:
                seen.add(option)
                default = parameters[option].default if option in parameters else inspect.Parameter.empty
                yield option, "required" if default is inspect.Parameter.empty else repr(default)


def rules_table() -> str:
    """Every update rule: formula's name, hyper-parameters with defaults, state arrays, what rows do."""
    rows = {"stay": "unchanged", "change": "updated as with a zero gradient",
            "lazy_mode": "updated as with a zero gradient, unless ``lazy_mode`` is set"}
    lines = []
    for name, rule in RULES.items():
        hypers = ", ".join(f"``{key}={value!r}``" for key, value in {**rule.hypers, **rule.setup}.items())
        states = ", ".join(f"``{state.name}``" for state in rule.states)
        lines += [f"``{name}``", f"    {_plain(_first_sentence(rule.run.__doc__))}", "",
                  f"    Hyper-parameters: {hypers or 'none'}. State: {states or 'none'}.", "",
                  f"    Rows without a gradient are {rows[rule.untouched_rows]}."
                  + (" Needs the norm or order of whole variables." if rule.needs_whole else ""), ""]
    return "\n".join(lines)


def exit_codes_table() -> str:
    """Every exit code with the kinds of error that lead to it."""
    by_code: dict[int, list[type]] = {}
    for kind in _kinds(errors.FleetError):
        by_code.setdefault(kind.exit_code, []).append(kind)
    lines = ["0", "    The job is done.", ""]
    for code, kinds in sorted(by_code.items()):
        lines += [str(code)]
        lines += [line for kind in kinds for line in (f"    ``{kind.__name__}``: {_first_sentence(kind.__doc__)}", "")]
    return "\n".join(lines)


def _kinds(kind: type) -> Iterator[type]:
    if kind.__module__ == "fleet_mpi.errors":
        yield kind
    for one in kind.__subclasses__():
        yield from _kinds(one)


def without_effect_table() -> str:
    """Names that scripts may set or call and nothing follows from, by owner."""
    return "\n".join(line for owner, names in idle_names.TABLE.items() for line in (
        owner, f"    {_listed(names)}", ""))


def names_table(root: str) -> str:
    """The names of every module below ``fleet_mpi.fluid`` or ``fleet_mpi.paddle``; refused ones are in the other
    table."""
    lines = []
    for path, module in modules(f"fleet_mpi.{root}"):
        names = [name for name in sorted(module.__all__)
                 if name != "refused_modules" and sentence_of(module, name) is None]
        if names:
            lines += [f"``{path}``", f"    {_listed(names)}", ""]
    return "\n".join(lines)


def refused_table(root: str) -> str:
    """Names that can be imported and raise NotBuilt when they are used, with the sentence that they say."""
    by_sentence: dict[str, list[str]] = {}
    for path, module in modules(f"fleet_mpi.{root}"):
        for name in sorted(module.__all__):
            sentence = sentence_of(module, name)
            if sentence is not None:
                by_sentence.setdefault(sentence, []).append(f"{path}.{name}")
    for path, (words, sentence) in refused_modules.TABLE.items():
        if path.startswith("fluid") == (root == "fluid"):
            by_sentence.setdefault(sentence, []).extend(f"paddle.{path}.{name}" for name in words.split())
    return "\n".join(line for sentence, names in sorted(by_sentence.items(), key=lambda item: item[1]) for line in (
        _plain(sentence[0].upper() + sentence[1:] + "."), f"    {_listed(names)}", ""))


def modules(root: str) -> Iterator[tuple[str, Any]]:
    """(path as scripts write it, module) of a package of names and all modules below it that have names."""
    top = importlib.import_module(root)
    below = (importlib.import_module(one.name) for one in pkgutil.walk_packages(top.__path__, f"{root}."))
    for module in (top, *below):
        if hasattr(module, "__all__") and not module.__name__.endswith("refused_modules"):
            path = module.__name__.replace("fleet_mpi.fluid", "paddle.fluid").replace("fleet_mpi.paddle", "paddle")
            yield path, module


def sentence_of(module: Any, name: str) -> str | None:
    """What a name says when it is used, if it is refused."""
    value = getattr(module, name)
    is_refused = isinstance(value, type) and value.__module__ == "fleet_mpi.errors"
    return getattr(value, "sentence", None) if is_refused else None


def layers_table() -> str:
    """The rows of the import rule, from the highest to the lowest, as the test has them."""
    source = Path(__file__).parents[2] / "tests" / "unit" / "test_imports.py"
    layers = next(ast.literal_eval(node.value) for node in ast.parse(source.read_text()).body
                  if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS")
    lines = [".. list-table::", "   :widths: 8 92", ""]
    for height, parts in reversed(list(enumerate(layers))):
        lines += [f"   * - {height}", f"     - {_listed(parts)}"]
    return "\n".join([*lines, ""])


TABLES = {"layers": layers_table, "settings": settings_table, "flags": flags_table, "modes": modes_table,
          "rules": rules_table, "exit_codes": exit_codes_table, "without_effect": without_effect_table,
          "names_fluid": lambda: names_table("fluid"), "names_paddle": lambda: names_table("paddle"),
          "refused_fluid": lambda: refused_table("fluid"), "refused_paddle": lambda: refused_table("paddle")}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"``{name}``" for name in names)


def _first_sentence(text: str | None) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join((text or "").strip().partition("\n\n")[0].split()).replace("::", ":")


def _plain(text: str) -> str:
    """Text whose stars, bars and underscores mean themselves; literals stay."""
    parts = text.split("``")
    parts[::2] = [part.replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|").replace("_", "\\_")
                  .replace("`", "\\`") for part in parts[::2]]
    return "``".join(parts)
