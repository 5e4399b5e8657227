"""``DataFeedDesc``: the description of a multislot file, read from a text file of the original's form and written
again.

Kept for scripts that print or change one; datasets here take their slots from the variables.
"""

import json
import re

from fleet_mpi.errors import StorageProblem, UsageError, nearest

_TOKEN = re.compile(r'\s*(?:#[^\n]*\n\s*)*(?:([A-Za-z_]\w*)\s*(:?)|("(?:[^"\\]|\\.)*"|-?[\d.]+)|([{}]))')
_ORDER = ("name", "batch_size", "multi_slot_desc", "pipe_command", "slots", "type", "is_dense", "is_used", "shape")


class DataFeedDesc:
    """The slots of a file: names, kinds, which are dense and which are used.

    Args:
        proto_file: the path of a text like ``name: "MultiSlotDataFeed" batch_size: 2 multi_slot_desc { slots { ... }
        }``.
    """

    def __init__(self, proto_file):
        try:
            with open(proto_file) as file:
                text = file.read()
        except OSError as problem:
            raise StorageProblem(f"DataFeedDesc: cannot read {proto_file!r}: {problem.strerror}") from None
        self._fields = _Text(text, proto_file).fields()
        self._fields["pipe_command"] = ["cat"]
        slots = self._fields.get("multi_slot_desc", [{}])[0].get("slots", [])
        self._slots = {slot["name"][0]: slot for slot in slots}

    def set_batch_size(self, batch_size):
        """Samples per batch."""
        self._fields["batch_size"] = [int(batch_size)]

    def set_dense_slots(self, dense_slots_name):
        """Let these slots be dense: all samples have as many values."""
        self._mark("set_dense_slots", dense_slots_name, "is_dense")

    def set_use_slots(self, use_slots_name):
        """Let these slots be used; a slot is not, unless it is named."""
        self._mark("set_use_slots", use_slots_name, "is_used")

    def desc(self):
        """The description as text."""
        return "\n".join(_lines(self._fields)) + "\n"

    def _mark(self, who, names, field):
        for name in names:
            if name not in self._slots:
                raise UsageError(f"DataFeedDesc.{who}: no slot is called {name!r}; {nearest(name, self._slots)}")
            self._slots[name][field] = [True]


class _Text:
    """Fields ``name: value`` and ``name { fields }``, each name with the list of its values."""

    def __init__(self, text, where):
        self._text, self._where, self._at = text.rstrip() + "\n", where, 0

    def fields(self, inner=False):
        """All fields up to the end, or to the closing bracket."""
        found = {}
        while (token := self._next()) is not None and token[4] != "}":
            if not token[1]:
                self._fail(token)
            found.setdefault(token[1], []).append(self._value(bool(token[2])))
        if inner != (token is not None):
            self._fail(token)
        return found

    def _value(self, is_plain):
        token = self._next()
        if token is None or is_plain != (token[4] is None) or token[4] == "}":
            self._fail(token)
        if not is_plain:
            return self.fields(inner=True)
        if token[1] in ("true", "false"):
            return token[1] == "true"
        return json.loads(token[3]) if token[3] else self._fail(token)

    def _next(self):
        if not self._text[self._at:].strip():
            return None
        token = _TOKEN.match(self._text, self._at)
        if token is None:
            self._at += len(self._text[self._at:]) - len(self._text[self._at:].lstrip())
            self._fail(re.compile(r"\S+").match(self._text, self._at))
        self._at = token.end()
        return token

    def _fail(self, token):
        line = self._text.count("\n", 0, min(self._at, len(self._text) - 1)) + 1
        raise UsageError(f"DataFeedDesc: {self._where}, line {line}: expected fields like 'name: \"words\"' or 'slots "
                         f"{{ ... }}', got {token[0].strip() if token else 'the end'!r}")


def _lines(fields, indent=""):
    known = sorted(fields, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    for name in known:
        for value in fields[name]:
            if isinstance(value, dict):
                yield f"{indent}{name} {{"
                yield from _lines(value, indent + "  ")
                yield f"{indent}}}"
            else:
                yield f"{indent}{name}: {json.dumps(value)}"
