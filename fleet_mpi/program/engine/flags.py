"""``set_flags`` and ``get_flags``: settings changed from a script instead of the environment."""

import collections.abc
import os

from fleet_mpi import notices, settings
from fleet_mpi.errors import UsageError

# FLAGS_* of the original that mean nothing here, as the script set them.
_without_effect = {}


def set_flags(flags):
    """Let settings have these values from now on; a FLAGS_* name that means nothing here is kept, and said once."""
    if not isinstance(flags, dict):
        raise UsageError(f"set_flags: expected a dictionary {{'FLAGS_...': value}}, got {type(flags).__name__}")
    for name, value in flags.items():
        if name in settings.NAMES:
            settings.put(name, value)
        elif name.startswith("FLAGS_"):
            _without_effect[name] = value
            meant = "; ".join(cure for _, cure in settings.strangers([name]))
            notices.once(("flag", name), f"set_flags: {name} has no effect here" + (meant and f"; {meant}"))
        else:
            raise UsageError(f"set_flags: flags are called 'FLAGS_...', got {name!r}")


class AllFlags(collections.abc.MutableMapping):
    """What ``core.globals()`` is: flags by name, to read and to set."""

    def __getitem__(self, name):
        if name not in self:
            raise KeyError(name)
        return get_flags(name)[name]

    def __contains__(self, name):
        return name in list(self)

    def __setitem__(self, name, value):
        set_flags({name: value})

    def __delitem__(self, name):
        raise UsageError(f"flags are set, not removed: {name!r}")

    def __iter__(self):
        return iter([name for name in (*settings.NAMES, *_without_effect) if name.startswith("FLAGS_")])

    def __len__(self):
        return len(list(iter(self)))


def all_flags():
    """All flags by name."""
    return AllFlags()


def get_flags(flags):
    """{name: value} of one name or several; None of a FLAGS_* that means nothing here and was never set."""
    names = [flags] if isinstance(flags, str) else list(flags)
    return {name: _value(name) for name in names}


def _value(name):
    """What the script set, a setting, or what the environment says of a flag of the original's."""
    if name in _without_effect:
        return _without_effect[name]
    is_misspelt = any(settings.strangers([name]))
    return os.environ.get(name) if name.startswith("FLAGS_") and not is_misspelt and name not in settings.NAMES else (
        settings.get(name))
